import type { Member } from './member.js'

/**
 * A member whose secret was refused, or could not be had, gets requests again as soon as it has another one: of a new configuration, of its
 * file, of its function. Whoever uses a secret asks for it again, and while the member is out nobody does.
 */
export function noticeSecrets (members: readonly Member[]): void {
  for (const { health, upstream: { secret } } of members) {
    if (!health.isRefused) continue
    const current = secret.current()
    if (typeof current === 'string') health.meet(current)
    else current?.then((later) => health.meet(later), () => {})
  }
}
