import { LRUCache } from 'lru-cache'
import type { Load } from './load.js'
import type { Member } from './member.js'
import { score } from './rendezvous.js'

/** A member may have this many times its share of the load before requests go elsewhere. */
const bound = 1.25
/** So few requests are no load: while a pool idles, nothing moves. */
const ease = 8
const maxHomes = 50_000
/** Longer than any provider keeps an unused prompt cache without being asked to. */
const homeTtlMs = 3_600_000

/** What requests that keep to one member have in common: a conversation, or the API key of their caller. */
export interface AffinityKey {
  readonly hash: number
  /**
   * It stays with its last member, so that one that comes back does not move it twice. False for an API key, which may be all of the load.
   */
  readonly stays: boolean
}

/**
 * Sends requests with the same key to the same member: the first in the key's own order of the members (rendezvous hashing) that is not
 * far busier than the others. Every process finds the same one; each remembers where a conversation went.
 */
export class Affinity {
  /** Made on first use, because an LRU cache allocates for its maximum at once. */
  #homes: LRUCache<number, Member> | null = null

  /** One of the members, of which there is at least one. */
  pick (members: readonly [Member, ...Member[]], key: AffinityKey, now: number): Member {
    const home = key.stays ? this.#homes?.get(key.hash) : undefined
    // One busy agent alone is no reason to move: only requests that run at the same time are.
    const stays = home !== undefined && members.includes(home) && roomFor(members, running)(home)
    const chosen = stays ? home : first(members, key.hash, roomFor(members, (load) => load.at(now)))
    if (key.stays && chosen !== home) this.#keep(key.hash, chosen)
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

/** One always has room: not all can be above their share. */
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
