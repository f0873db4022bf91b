import { LRUCache } from 'lru-cache'
import type { Load } from './load.js'
import type { Member } from './member.js'
import { score } from './rendezvous.js'

/** A member may have this much more than its share before what would go to it goes elsewhere. */
const bound = 1.25
/** So few in all are no load: where a pool idles, nothing moves. */
const ease = 8
const maxHomes = 50_000
/** Longer than any provider keeps an unused prompt cache without being asked to. */
const homeTtlMs = 3_600_000

/** What keeps to a member. */
export interface Tie {
  readonly hash: number
  /**
   * It stays where it went last, so that a member that comes back does not move it twice. False for a key, which may be all of the load.
   */
  readonly stays: boolean
}

/**
 * Sends what belongs together to the same member: the first of its own order of the members (rendezvous) that is not far busier
 * than the others. Every process finds the same one; each remembers where a conversation went.
 */
export class Affinity {
  /** Made for the first that stays: its room is taken at once. */
  #homes: LRUCache<number, Member> | null = null

  /** One of the members, of which there is at least one. */
  pick (members: readonly [Member, ...Member[]], tie: Tie, now: number): Member {
    const home = tie.stays ? this.#homes?.get(tie.hash) : undefined
    // A single busy agent is no load that others would have to take: only what runs at the same time moves it.
    const stays = home !== undefined && members.includes(home) && roomFor(members, running)(home)
    const chosen = stays ? home : first(members, tie.hash, roomFor(members, (load) => load.at(now)))
    if (tie.stays && chosen !== home) this.#keep(tie.hash, chosen)
    return chosen
  }

  #keep (hash: number, member: Member): void {
    this.#homes ??= new LRUCache({ max: maxHomes, ttl: homeTtlMs })
    this.#homes.set(hash, member)
  }
}

/** Tells whether a member has room for one more, by its share of the load of all. */
function roomFor (members: readonly Member[], loadOf: (load: Load) => number): (member: Member) => boolean {
  let total = 1
  let weights = 0
  for (const { load, weight } of members) {
    total += loadOf(load)
    weights += weight
  }
  return ({ load, weight }) => loadOf(load) + 1 <= Math.max(ease, bound * total * weight / weights)
}

function running ({ active }: Load): number {
  return active
}

/** There is always one with room: not all can be above their share. */
function first (members: readonly [Member, ...Member[]], hash: number, fits: (member: Member) => boolean): Member {
  let best = members[0]
  let highest = -1
  for (const member of members) {
    const own = score(hash, member.hash, member.weight)
    if (own <= highest || !fits(member)) continue
    best = member
    highest = own
  }
  return best
}
