import type { Upstream } from '../core/upstream/upstream.js'
import type { Health } from './health.js'
import { Load } from './load.js'
import { textHash } from './rendezvous.js'

/** An upstream as a member of one pool. */
export interface Member {
  readonly upstream: Upstream
  readonly health: Health
  readonly load: Load
  readonly weight: number
  /** Infinity for any number. */
  readonly concurrency: number
  readonly tier: number
  /** Of its name: the same in each process. */
  readonly hash: number
}

type MemberRules = Pick<Member, 'weight' | 'concurrency' | 'tier'>

export const memberDefaults: MemberRules = { weight: 1, concurrency: Infinity, tier: 1 }

export function newMember (upstream: Upstream, health: Health, rules: MemberRules = memberDefaults, load = new Load()): Member {
  return { upstream, health, load, hash: textHash(upstream.name), ...rules }
}
