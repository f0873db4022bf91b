/**
 * Counters that are there at 0 before their first event: a rate sees no rise in a counter that begins at 1, so an alert would
 * not see the first. Those whose labels are all closed words, but for what callers do wrong in their requests.
 */
import { errorTable } from '../core/errors/table.js'
import type { LookupResult, ShedReason } from '../core/recorder.js'
import type { AbortSide, UsageMissing } from '../core/types.js'
import { protocolNames } from '../protocols/index.js'
import type { NameOf } from './catalogue.js'

type Words<W extends string> = Readonly<Record<W, true>>

const usageMissing: Words<UsageMissing> = { no_usage: true, parse_error: true, client_abort: true, upstream_abort: true, too_large: true }
const sides: Words<AbortSide> = { client: true, upstream: true, gateway: true }
const lookups: Words<LookupResult> = { hit: true, negative_hit: true, miss: true, coalesced: true, stale: true, error: true }
const shed: Words<ShedReason> = {
  active: true, connections: true, heap: true, key_share: true, loop_delay: true, queue_full: true, queue_timeout: true,
}

/** What `auth` refuses for, and both ways in which it counts two keys. What a host's own plugin refuses is not among it. */
const notOfAuth: ReadonlySet<string> = new Set(['not_authorized', 'model_not_priced'])
const authCodes = Object.entries(errorTable).filter(([code, { outcome }]) => outcome === 'auth_error' && !notOfAuth.has(code))
const authFailures = [...authCodes.map(([code]) => code), 'too_many_auth_failures', 'conflict']
const asked = [...protocolNames, 'models', 'sockets']

function pairs (firsts: readonly string[], seconds: readonly string[]): readonly string[][] {
  return firsts.flatMap((first) => seconds.map((second) => [first, second]))
}

/** Label values in the order of the catalogue. */
const fromZero: Readonly<Partial<Record<NameOf<'counter'>, ReadonlyArray<readonly string[]>>>> = {
  usage_missing_total: pairs(protocolNames, Object.keys(usageMissing)),
  usage_inconsistent_total: protocolNames.map((protocol) => [protocol]),
  stream_aborts_total: pairs(protocolNames, Object.keys(sides)),
  auth_failures_total: pairs(asked, authFailures),
  key_lookups_total: Object.keys(lookups).map((result) => [result]),
  ledger_write_failures_total: [[]],
  shed_total: Object.keys(shed).map((reason) => [reason]),
  log_lines_dropped_total: [[]],
}

export function knownFromStart (name: NameOf<'counter'>): ReadonlyArray<readonly string[]> {
  return fromZero[name] ?? []
}
