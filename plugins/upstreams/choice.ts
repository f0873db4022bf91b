import type { AffinityKey } from './affinity.js'
import { lessBusy } from './less-busy.js'
import type { Member } from './member.js'
import type { Pool } from './pool.js'

/** Stands for the model in what is kept by model, if a request names none. */
export const noModel = ''

export interface Ask {
  readonly model: string
  readonly affinityKey: AffinityKey | null
  readonly now: number
  /** What this request was sent to before. */
  readonly tried: readonly Member[]
  /** Accounts that refused it. */
  readonly refusedBy: readonly string[]
  readonly random: () => number
}

type Some = readonly [Member, ...Member[]]

/**
 * The member that gets a request. Of the lowest tier in which a member may serve: the one that the affinity key picks, or without a key
 * the less busy of two. A retry is to help, so it goes to the member with the fewest requests since its last good reply. Where all are
 * out, the one that returns soonest; a retry then skips members whose account is cooling down. Null where every member is at its
 * `concurrency`, or every account refused.
 */
export function choose (pool: Pool, ask: Ask): Member | null {
  const serving = lowestTier(pool.members.filter((member) => isServing(member, ask)))
  if (serving !== null) {
    if (ask.affinityKey !== null) return pool.homes.pick(serving, ask.affinityKey, ask.now)
    return lessBusy(ask.tried.length === 0 ? serving : surest(serving), ask.random)
  }
  // A healthy member, which was tried then, comes before an untried one that is out.
  const again = lowestTier(pool.members.filter((member) => isAskable(member, ask) && mayServe(member, ask)))
  if (again !== null) return lessBusy(again, ask.random)
  const open = pool.members.filter((member) => isOpen(member, ask))
  // A first attempt asks somebody even if all are out; a retry asks no account that said when to come again.
  return soonest(ask.tried.length === 0 ? open : open.filter(({ health }) => health.account.allows(ask.model, ask.now)), ask)
}

export function isServing (member: Member, ask: Ask): boolean {
  return isOpen(member, ask) && mayServe(member, ask)
}

function isOpen (member: Member, ask: Ask): boolean {
  return isAskable(member, ask) && !ask.tried.includes(member)
}

function isAskable ({ health, concurrency, load }: Member, { refusedBy }: Ask): boolean {
  return load.active < concurrency && !refusedBy.includes(health.account.name)
}

function mayServe ({ health }: Member, { model, now }: Ask): boolean {
  return health.allows(model, now) && health.account.allows(model, now)
}

/** Members are in the order of their tiers. */
function lowestTier (members: readonly Member[]): Some | null {
  const tier = members[0]?.tier
  const lowest = members.at(-1)?.tier === tier ? members : members.filter((member) => member.tier === tier)
  return isSome(lowest) ? lowest : null
}

function isSome (members: readonly Member[]): members is Some {
  return members.length > 0
}

/** Those with the fewest unanswered requests: by load alone, a member that hangs looks healthy until its breaker opens. */
function surest ([first, ...others]: Some): Some {
  let best: Some = [first]
  for (const member of others) {
    const difference = doubt(member) - doubt(best[0])
    if (difference < 0) best = [member]
    else if (difference === 0) best = [...best, member]
  }
  return best
}

function doubt ({ load, weight }: Member): number {
  return load.unanswered / weight
}

function soonest (members: readonly Member[], { model }: Ask): Member | null {
  let best: Member | null = null
  for (const member of members) {
    if (best === null || member.health.returnsAt(model) < best.health.returnsAt(model)) best = member
  }
  return best
}
