import { readArgs } from '../args.js'
import { UsageError } from '../io.js'
import { isProfile, profileNames, type ProfileName } from './profiles.js'

export type FamilyName = 'openai' | 'anthropic' | 'gemini'

export interface Options {
  /** Origin and mount prefix of the gateway under test, without a slash at its end. */
  readonly baseUrl: string
  /** A key of the gateway per family; empty: the checks of that family do not apply. */
  readonly keys: Readonly<Record<FamilyName, string>>
  readonly models: Readonly<Record<FamilyName, string>>
  /** A key whose balance is spent, empty for none. */
  readonly spentKey: string
  /** Port on which the kit plays the provider; null: the gateway has a far side of its own. */
  readonly upstreamPort: number | null
  /** Address of the gateway's Prometheus text, empty for none. */
  readonly metricsUrl: string
  /** File for the results, empty for none. */
  readonly json: string
  /** File for the results in JUnit format, empty for none. */
  readonly junit: string
  readonly profile: ProfileName
  /** Numbers of the checks to run, whatever the profile; empty: all of the profile. */
  readonly only: readonly number[]
  /** How long one check may take. */
  readonly timeoutMs: number
}

const text = { type: 'string', default: '' } as const
const model = { type: 'string', default: 'model-1' } as const

const flags = {
  'base-url': text,
  'key-openai': text,
  'key-anthropic': text,
  'key-gemini': text,
  'key-spent': text,
  'model-openai': model,
  'model-anthropic': model,
  'model-gemini': model,
  'upstream-port': text,
  'metrics-url': text,
  json: text,
  junit: text,
  profile: { type: 'string', default: 'transparent' },
  check: { type: 'string', multiple: true },
  'timeout-ms': { type: 'string', default: '10000' },
} as const

/** Reads the command line. Throws `UsageError`. */
export function readOptions (args: string[]): Options {
  const { values } = readArgs({ args, options: flags })
  return {
    baseUrl: address('--base-url', values['base-url']).replace(/\/+$/, ''),
    keys: { openai: values['key-openai'], anthropic: values['key-anthropic'], gemini: values['key-gemini'] },
    models: { openai: values['model-openai'], anthropic: values['model-anthropic'], gemini: values['model-gemini'] },
    spentKey: values['key-spent'],
    upstreamPort: values['upstream-port'] === '' ? null : whole('--upstream-port', values['upstream-port'], 65_535),
    metricsUrl: values['metrics-url'] === '' ? '' : address('--metrics-url', values['metrics-url']),
    json: values.json,
    junit: values.junit,
    profile: profileName(values.profile),
    only: (values.check ?? []).map((value) => whole('--check', value, 999)),
    timeoutMs: whole('--timeout-ms', values['timeout-ms'], 3_600_000),
  }
}

function address (flag: string, value: string): string {
  if (!URL.canParse(value) || !/^https?:/.test(value)) throw new UsageError(`${flag} must be an http or https address`)
  return value
}

function profileName (value: string): ProfileName {
  if (!isProfile(value)) throw new UsageError(`--profile must be ${profileNames.join(', ')}`)
  return value
}

function whole (flag: string, value: string, max: number): number {
  if (!/^\d+$/.test(value) || Number(value) > max) throw new UsageError(`${flag} must be a whole number up to ${max}`)
  return Number(value)
}
