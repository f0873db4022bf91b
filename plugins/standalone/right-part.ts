/** What is right of a configuration, so that a mistake in one place hides none in another. */
import { joinPath, type Problem } from './config-error.js'

/** What stands for an entry that is wrong: that others name it is no mistake of theirs. */
const entryStandIns: ReadonlyArray<[section: string, standIn: (index: number, upstream: unknown, group: unknown) => object]> = [
  ['upstreams', () => ({ simulate: true })],
  ['pools', (_, upstream) => ({ members: [upstream] })],
  ['groups', (_, upstream) => ({ protocols: [], upstream })],
  ['keys', (index, _, group) => ({ id: `wrong.${index}`, group, secret: `wrong.${index}` })],
]

/** What stands for a whole section; one that is not named here is left out. */
const sectionStandIns: Readonly<Record<string, object>> = {
  upstreams: { none: { simulate: true } },
  groups: { none: { protocols: [] } },
  prices: { models: { none: { input: 0 } } },
  state: { engine: 'memory' },
}

export interface RightPart {
  readonly rest: Readonly<Record<string, unknown>>
  /** Sections of which nothing is left. */
  readonly wrong: ReadonlySet<string>
}

/** Of upstreams, pools, groups and keys only the entries that are wrong are replaced, of all else the section. */
export function rightPart (value: unknown, problems: readonly Problem[]): RightPart {
  const rest: Record<string, unknown> = { ...Object(value) }
  const paths = problems.map(({ path }) => path)
  const wrong = new Set(paths.filter((path) => !isOfEntry(path, rest)).map(sectionOf))
  for (const section of wrong) {
    delete rest[section]
    if (Object.hasOwn(sectionStandIns, section)) rest[section] = sectionStandIns[section]
  }
  for (const [section, standIn] of entryStandIns) {
    const entries = rest[section]
    if (entries === undefined) continue
    const [upstream, group] = [rest['upstreams'], rest['groups']].map((named) => namesOf(named)[0])
    const right = namesOf(entries).map((name, index): [string | number, unknown] => {
      const isWrong = paths.some((path) => isBelow(path, joinPath(section, name)))
      return [name, isWrong ? standIn(index, upstream, group) : Reflect.get(Object(entries), name)]
    })
    rest[section] = Array.isArray(entries) ? right.map(([, entry]) => entry) : Object.fromEntries(right)
  }
  return { rest, wrong }
}

function sectionOf (path: string): string {
  return path.replace(/[.[].*$/s, '')
}

/** A name that is none cannot stay, whatever stands for its entry. */
function isOfEntry (path: string, sections: Readonly<Record<string, unknown>>): boolean {
  const section = sectionOf(path)
  return entryStandIns.some(([name]) => name === section) && namesOf(sections[section])
    .some((name) => /^[A-Z0-9][A-Z0-9._-]{0,63}$/i.test(String(name)) && isBelow(path, joinPath(section, name)))
}

function namesOf (entries: unknown): Array<string | number> {
  const names = Object.keys(Object(entries))
  return Array.isArray(entries) ? names.map(Number) : names
}

function isBelow (path: string, place: string): boolean {
  return path.startsWith(place) && ['', '.', '['].includes(path.charAt(place.length))
}
