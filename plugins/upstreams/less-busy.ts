import type { Member } from './member.js'

/**
 * The less busy of two that are drawn by weight: close to the best that whoever knows all could do, and no herd runs to the same
 * member (Mitzenmacher, The power of two choices, 2001). `random`: from 0 to below 1.
 */
export function lessBusy (members: readonly [Member, ...Member[]], random: () => number): Member {
  const one = drawn(members, random)
  if (members.length === 1) return one
  const other = drawn(members, random)
  return other.load.active / other.weight < one.load.active / one.weight ? other : one
}

function drawn (members: readonly [Member, ...Member[]], random: () => number): Member {
  let left = random() * members.reduce((sum, { weight }) => sum + weight, 0)
  for (const member of members) {
    left -= member.weight
    if (left < 0) return member
  }
  return members[0]
}
