/** Which checks apply to a gateway, by its kind. */

const names = ['translating', 'transparent', 'house'] as const

export type ProfileName = typeof names[number]

export const profileNames: readonly string[] = names

/** Conventions of this project: another gateway is not wrong without them. */
const house: ReadonlySet<number> = new Set([15, 28, 29, 60, 112])

/** Bytes, names and statuses that must stay unchanged: a gateway that translates into another protocol cannot keep them. */
const untouched: ReadonlySet<number> = new Set([13, 14, 17, 32, 38, 57, 58, 63, 101, 113])

export function isProfile (name: string): name is ProfileName {
  return profileNames.includes(name)
}

export function holdsFor (profile: ProfileName, check: number): boolean {
  if (profile === 'house') return true
  return !house.has(check) && (profile === 'transparent' || !untouched.has(check))
}
