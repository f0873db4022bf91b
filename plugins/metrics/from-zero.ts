/**
 * Counters that start at 0 before their first event: a rate sees no rise in a counter that begins at 1, so an alert would miss the first
 * event. These are the counters whose labels all have fixed values, and those that follow from the configuration (`Recorder.expect`).
 */
import { errorTable } from '../core/errors/table.js'
import { lookupResults, shedReasons } from '../core/recorder.js'
import type { AbortSide, UsageMissing } from '../core/types.js'
import { families, protocolNames } from '../protocols/index.js'
import type { NameOf } from './catalogue.js'

type Words<W extends string> = Readonly<Record<W, true>>

const usageMissing: Words<UsageMissing> = { no_usage: true, parse_error: true, client_abort: true, upstream_abort: true, too_large: true }
const sides: Words<AbortSide> = { client: true, upstream: true, gateway: true }

/** Codes of the outcome `auth_error` that `auth` never refuses with; `not_authorized` is the refusal of a host's own plugin. */
const notOfAuth: ReadonlySet<string> = new Set(['not_authorized', 'model_not_priced'])
const authCodes = Object.entries(errorTable).filter(([code, { outcome }]) => outcome === 'auth_error' && !notOfAuth.has(code))
const authFailures = [...authCodes.map(([code]) => code), 'too_many_auth_failures', 'conflict']
const asked = [...protocolNames, 'models', 'sockets']

/** As in `core/url/resolve.ts`. */
const repairs = ['missing_prefix', 'slashes', 'other_version', 'mixed_prefixes', 'duplicate_v1', 'duplicate_v1beta', 'duplicate_v1alpha']
/** As in `core/door/refuse-url.ts`. */
const pathFaults = ['ambiguous_path', 'crowded_query', 'doubled_path', 'method_not_allowed', 'unknown_action', 'unknown_url']
/** As in `validation/body-refusal.ts`, and the keywords of our schemas. A host's own schemas may have more. */
const bodyFaults = [
  'media_type', 'encoding', 'empty', 'too_large', 'bom', 'utf8', 'depth', 'values', 'json', 'duplicate_key', 'models', 'form', 'unchecked',
  'anyOf', 'enum', 'if', 'minItems', 'minLength', 'minimum', 'not', 'pattern', 'required', 'type',
]

function pairs (firsts: readonly string[], seconds: readonly string[]): readonly string[][] {
  return firsts.flatMap((first) => seconds.map((second) => [first, second]))
}

/** Label values in the order of the catalogue. */
const fromZero: Readonly<Partial<Record<NameOf<'counter'>, ReadonlyArray<readonly string[]>>>> = {
  usage_missing_total: pairs(protocolNames, Object.keys(usageMissing)),
  usage_inconsistent_total: protocolNames.map((protocol) => [protocol]),
  stream_aborts_total: pairs(protocolNames, Object.keys(sides)),
  auth_failures_total: pairs(asked, authFailures),
  validation_failures_total: pairs(protocolNames, bodyFaults),
  path_normalizations_total: pairs([...protocolNames, 'models'], repairs),
  path_refusals_total: pairs(Object.keys(families), pathFaults),
  key_lookups_total: lookupResults.map((result) => [result]),
  ledger_write_failures_total: [[]],
  settlements_lost_total: [[]],
  shed_total: shedReasons.map((reason) => [reason]),
  log_lines_dropped_total: [[]],
}

export function knownFromStart (name: NameOf<'counter'>): ReadonlyArray<readonly string[]> {
  return fromZero[name] ?? []
}

/**
 * Maximum number of label sets of one counter that configurations may add at 0, over all reloads of a process. Each is a line of every
 * scrape and a series that is kept for ever; seventy groups with their seven limits fit. Further ones begin with their first event.
 */
export const maxExpected = 500

type LabelSets = Iterable<readonly string[]>

/** Adds label sets to a counter, while there is room. */
export function expecting (counter: { readonly expect: (values: readonly string[]) => boolean }): (labelSets: LabelSets) => void {
  let room = maxExpected
  return (labelSets) => {
    for (const values of labelSets) {
      if (room === 0) return
      if (counter.expect(values)) room -= 1
    }
  }
}
