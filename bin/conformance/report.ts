import { table } from '../table.js'
import type { Check } from './check.js'

export type Verdict = 'pass' | 'fail' | 'n/a'

export interface Result {
  readonly number: number
  readonly title: string
  readonly verdict: Verdict
  /** What was seen, what was expected, or what the check lacked. */
  readonly seen: string
  readonly ms: number
}

export function resultOf ({ number, title }: Check, verdict: Verdict, seen: string, ms = 0): Result {
  return { number, title, verdict, seen, ms: Math.round(ms) }
}

/** Lines of a table without titles, one per check. */
export function resultLines (results: readonly Result[]): string[] {
  const rows = results.map(({ number, title, verdict, seen }) => [String(number).padStart(3), verdict, title, seen.slice(0, 160)])
  return table(Array.from({ length: 4 }, () => ({ title: '' })), rows).slice(1)
}

/** Numbers of checks that passed, failed, did not apply. */
export function tally (results: readonly Result[]): Record<Verdict, number> {
  const counts = { pass: 0, fail: 0, 'n/a': 0 }
  for (const { verdict } of results) counts[verdict] += 1
  return counts
}

/** Results in the JUnit format of build servers. A check that does not apply is skipped. */
export function junit (results: readonly Result[]): string {
  const { fail, 'n/a': skipped } = tally(results)
  const cases = results.map(({ number, title, verdict, seen, ms }) => {
    const head = `<testcase classname="conformance" name="${escaped(`${number} ${title}`)}" time="${ms / 1000}"`
    if (verdict === 'pass') return `  ${head}/>`
    return `  ${head}><${verdict === 'fail' ? 'failure' : 'skipped'} message="${escaped(seen)}"/></testcase>`
  })
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuite name="conformance" tests="${results.length}" failures="${fail}" skipped="${skipped}">`,
    ...cases,
    '</testsuite>',
    '',
  ].join('\n')
}

/** Text of an attribute (XML 1.0); characters that no document may contain are left out. */
function escaped (text: string): string {
  const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '"': '&quot;' }
  return text.replace(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd]/g, '').replace(/[&<"]/g, (found) => String(entities[found])).replace(/\s/g, ' ')
}
