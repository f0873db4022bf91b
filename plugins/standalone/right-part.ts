/** The valid part of a configuration, so that a mistake in one place hides none in another. */
import { isObject } from '../core/body/json-object.js'
import { joinPath } from '../core/config/join-path.js'
import type { Problem } from './config-error.js'
import { formProblems } from './config-schema.js'

type Fields = Readonly<Record<string, unknown>>

interface Names {
  readonly index: number
  readonly upstream: unknown
  readonly group: unknown
}

interface Section {
  readonly name: string
  /** Replaces a wrong entry, so that references to it are no mistakes. */
  readonly entry: (names: Names) => Fields
  /** Replaces single fields, where `entry` has no value for them. */
  readonly fields?: Fields
}

const sections: readonly Section[] = [
  { name: 'upstreams', entry: () => ({ simulate: true }), fields: { url: 'http://127.0.0.1:9', credential: 'none' } },
  { name: 'pools', entry: ({ upstream }) => ({ members: [upstream] }) },
  { name: 'groups', entry: ({ upstream }) => ({ protocols: [], upstream }) },
  { name: 'keys', entry: ({ index, group }) => ({ id: `wrong.${index}`, group, secret: `wrong.${index}` }) },
]

/** Replacements of whole sections; those not named here are left out. */
const sectionStandIns: Readonly<Record<string, object>> = {
  upstreams: { none: { simulate: true } },
  groups: { none: { protocols: [] } },
  prices: { models: { none: { input: 0 } } },
  state: { engine: 'memory' },
}

interface RightPart {
  readonly rest: Fields
  /** Sections of which nothing is valid. */
  readonly wrong: ReadonlySet<string>
}

/** In upstreams, pools, groups and keys only the wrong fields or entries are replaced, elsewhere the whole section. */
export function rightPart (value: unknown, problems: readonly Problem[]): RightPart {
  const rest: Record<string, unknown> = isObject(value) ? { ...value } : {}
  const paths = problems.map(({ path }) => path)
  const entries = new Set(sections.flatMap(({ name }) => namesOf(rest[name]).filter(isName).map((entry) => joinPath(name, entry))))
  const wrong = new Set(paths.filter((path) => !placesOf(path).some((place) => entries.has(place))).map(sectionOf))
  for (const section of wrong) {
    delete rest[section]
    if (Object.hasOwn(sectionStandIns, section)) rest[section] = sectionStandIns[section]
  }
  replaceEntries(rest, paths, sparedEntry)
  // The rest of an entry may lack what it needs.
  replaceEntries(rest, formProblems(rest, new Set()).map(({ path }) => path), ({ entry }) => entry)
  return { rest, wrong }
}

interface WrongEntry {
  readonly value: unknown
  readonly place: string
  /** Paths of the mistakes at or below its place. */
  readonly paths: readonly string[]
  readonly entry: Fields
  readonly fields: Fields
}

function replaceEntries (rest: Record<string, unknown>, paths: readonly string[], replace: (wrong: WrongEntry) => unknown): void {
  const [upstream, group] = [rest['upstreams'], rest['groups']].map((named) => namesOf(named)[0])
  // Each path is looked at once: of thousands of keys each may have the same mistake.
  const below = new Map<string, string[]>()
  for (const path of paths) for (const place of placesOf(path)) below.set(place, below.get(place) ?? []).get(place)?.push(path)
  for (const { name: section, entry, fields } of sections) {
    const entries = rest[section]
    if (entries === undefined) continue
    const right = namesOf(entries).map((name, index): [string | number, unknown] => {
      const [value, place] = [Reflect.get(Object(entries), name), joinPath(section, name)]
      const own = below.get(place)
      if (own === undefined) return [name, value]
      const standIn = entry({ index, upstream, group })
      return [name, replace({ value, place, paths: own, entry: standIn, fields: fields ?? standIn })]
    })
    rest[section] = Array.isArray(entries) ? right.map(([, each]) => each) : Object.fromEntries(right)
  }
}

/** An entry without its wrong fields; the replacement of all of it if that is not possible. */
function sparedEntry ({ value, place, paths, entry, fields }: WrongEntry): unknown {
  if (!isObject(value)) return entry
  const copy = structuredClone(value)
  for (const path of paths) {
    // A key without either would lack its secret.
    const field = path.slice(place.length + 1).replace(/[.[].*$/s, '').replace(/^hash$/, 'secret')
    const isRemoved = removeField(copy, path, place)
    if (copy[field] === undefined && Object.hasOwn(fields, field)) copy[field] = fields[field]
    else if (!isRemoved) return entry
  }
  return copy
}

/** Removes the value at a path below `at`, or the list that it is in. False if there is none. */
export function removeField (holder: unknown, path: string, at: string): boolean {
  const isList = Array.isArray(holder)
  // By the names that the path may begin with: an entry may have thousands of wrong fields.
  for (const place of placesOf(path)) {
    const rest = place.slice(at === '' ? 0 : at.length + 1)
    const name = isList ? Number.parseInt(rest, 10) : rest
    if (joinPath(at, name) !== place || !Object.hasOwn(Object(holder), name)) continue
    const inner: unknown = Reflect.get(Object(holder), name)
    if (place !== path && removeField(inner, path, place)) return true
    if (place !== path && !Array.isArray(inner)) continue
    return !isList && Reflect.deleteProperty(Object(holder), name)
  }
  return false
}

function sectionOf (path: string): string {
  return path.replace(/[.[].*$/s, '')
}

/** A path, and all paths that it may be below: names may contain dots. */
function placesOf (path: string): string[] {
  return [...[...path.matchAll(/[.[]/g)].map(({ index }) => path.slice(0, index)), path]
}

/** An invalid name cannot stay, even with a replaced entry. */
function isName (name: string | number): boolean {
  return /^[A-Z0-9][A-Z0-9._-]{0,63}$/i.test(String(name))
}

function namesOf (entries: unknown): Array<string | number> {
  const names = Object.keys(Object(entries))
  return Array.isArray(entries) ? names.map(Number) : names
}
