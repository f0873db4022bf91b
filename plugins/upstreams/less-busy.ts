import type { Member } from './member.js'

/**
 * The less busy of two that are drawn by weight: nearly as good as the least busy of all, and processes do not all choose the same
 * member (Mitzenmacher, The power of two choices, 2001). `random`: from 0 to below 1.
 */
export function lessBusy (members: readonly [Member, ...Member[]], random: () => number): Member {
  const one = drawn(members, null, random)
  const other = drawn(members, one, random)
  return other.load.active / other.weight < one.load.active / one.weight ? other : one
}

/** One of the members by weight, except `left`, so that two different ones are drawn. */
function drawn (members: readonly [Member, ...Member[]], left: Member | null, random: () => number): Member {
  const total = members.reduce((sum, member) => member === left ? sum : sum + member.weight, 0)
  let rest = random() * total
  let last: Member = members[0]
  for (const member of members) {
    if (member === left) continue
    last = member
    rest -= member.weight
    if (rest < 0) break
  }
  return last
}
