/** Which checks a gateway is held to, by what it is. */

const names = ['translating', 'transparent', 'house'] as const

export type ProfileName = typeof names[number]

export const profileNames: readonly string[] = names

/** Conventions of this project, good ones as it thinks: no other gateway is wrong without them. */
const house: ReadonlySet<number> = new Set([15, 28, 29, 60, 112])

/** Bytes, names and statuses that stay as they came: a gateway that speaks another protocol to its provider cannot keep them. */
const untouched: ReadonlySet<number> = new Set([13, 14, 17, 32, 38, 57, 58, 63, 101, 113])

export function isProfile (name: string): name is ProfileName {
  return profileNames.includes(name)
}

export function holdsFor (profile: ProfileName, check: number): boolean {
  if (profile === 'house') return true
  return !house.has(check) && (profile === 'transparent' || !untouched.has(check))
}
