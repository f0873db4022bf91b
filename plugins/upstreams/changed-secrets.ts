import type { Member } from './member.js'

/**
 * Lets members whose secret was refused, or could not be had, take requests again once they have another secret: from a new configuration,
 * their file or their function. Otherwise only a request asks for a secret, and a member that is out gets none.
 */
export function noticeChangedSecrets (members: readonly Member[]): void {
  for (const { health, upstream: { secret } } of members) {
    if (!health.isRefused) continue
    const current = secret.current()
    if (typeof current === 'string') health.meet(current)
    else current?.then((later) => health.meet(later), () => {})
  }
}
