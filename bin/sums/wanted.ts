/** Which records a report is about. */
import { didYouMean } from '../../plugins/core/config/did-you-mean.js'
import type { Outcome } from '../../plugins/core/types.js'
import { protocolNames } from '../../plugins/protocols/index.js'
import { filters, type UsageQuestion as Question } from '../../plugins/state/usage-store/reader.js'
import { UsageError } from '../io.js'
import type { Calendar } from './calendar.js'

export type { Question }

/** Every given filter must match; of several values of one, any. */
export type Wanted = Question['wanted']

const outcomes: Readonly<Record<Outcome, true>> = {
  ok: true,
  client_error: true,
  auth_error: true,
  limited: true,
  upstream_error: true,
  gateway_error: true,
  timeout: true,
  client_abort: true,
  truncated: true,
}

/** Throws UsageError for a value that no record can have: the report would be empty without a reason. */
export function checkWanted ({ protocol, outcome }: Wanted): void {
  checkNames('--protocol', protocol, protocolNames)
  checkNames('--outcome', outcome, Object.keys(outcomes))
}

function checkNames (option: string, given: readonly string[], known: readonly string[]): void {
  const unknown = given.find((name) => !known.includes(name))
  if (unknown === undefined) return
  throw new UsageError(`${option} must be one of ${known.join(', ')}, not ${unknown}${didYouMean(unknown, known)}`)
}

/** Throws UsageError. */
export function readRange (calendar: Calendar, given: { readonly from?: string, readonly to?: string }): Pick<Question, 'from' | 'to'> {
  const [from, to] = [calendar.read('--from', given.from) ?? -Infinity, calendar.read('--to', given.to) ?? Infinity]
  if (to <= from) throw new UsageError('--to must be after --from, and is the first moment that is left out')
  return { from, to }
}

type Named = Readonly<Record<typeof filters[number], string | null>>

export function keeps (wanted: Wanted): (named: Named) => boolean {
  const given = filters.filter((name) => wanted[name].length > 0)
  return (named) => given.every((name) => wanted[name].includes(String(named[name])))
}
