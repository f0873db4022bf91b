import { hostsOf, type ConsoleOptions } from '../console/index.js'
import type { LlmGatewayOptions } from '../index.js'
import { defaultHeldBytes } from '../overload/index.js'
import type { UpstreamOptions } from '../upstreams/index.js'
import type { State } from '../state/types.js'
import { workersOf } from './config-values.js'
import type { GatewayConfig } from './config-types.js'

/** What survives a reload. */
export interface Shared {
  /** The simulated upstream, if there is one. */
  readonly simulator: UpstreamOptions | null
  /** The object whose metrics the app shares: the same one for each app of the process. */
  readonly cells: object
  /** Path of the console in the app, when it has a port of its own. */
  readonly consolePath: string
  /** Issued keys, balances and the ledger; null if none is open, as in `check`. */
  readonly state: Pick<State, 'keys' | 'balances' | 'ledger' | 'notes'> | null
}

/** More than a person mistypes or a misconfigured client retries, and far too few to guess a key. */
const authFailures = { perMinute: 120 }

// In place of the simulated upstream if none runs, as in `check`.
const nowhere = { url: 'http://127.0.0.1:9', credential: 'none' }

/** The file's sections as options of the bundle: unchanged, except for what the process itself provides. */
export function bundleOptions (config: GatewayConfig, { simulator, cells, consolePath, state: open }: Shared): LlmGatewayOptions {
  const { $schema, listen, state, log, cors, upstreams, ...parts } = config
  const entries = Object.entries(upstreams).map(([name, entry]): [string, UpstreamOptions] => {
    if (entry.simulate !== true) return [name, entry]
    const { url, credential } = simulator ?? nowhere
    return [name, { url, credential, ...entry.priceFactor !== undefined && { priceFactor: entry.priceFactor } }]
  })
  return {
    ...parts,
    overload: config.overload === false ? false : { maxHeldBytes: defaultHeldBytes(workersOf(config)), ...config.overload },
    auth: { failures: authFailures, ...config.auth },
    upstreams: Object.fromEntries(entries),
    // The app that takes over keeps what is known of the upstreams' health.
    health: cells,
    metrics: { ...config.metrics, process: true, cells },
    // Its port belongs to the process, not the app: two apps could not both listen during a reload.
    ...config.console && { console: consoleAt(config.console, consolePath) },
    ...open && { notes: open.notes, store: open.keys, limits: { ...config.limits, balances: open.balances, ledger: open.ledger } },
  }
}

function consoleAt (options: ConsoleOptions, ownPath: string): ConsoleOptions {
  const hosts = hostsOf(options)
  return { path: options.path ?? ownPath, ...hosts && { hosts } }
}

export function simulates (config: GatewayConfig): boolean {
  return Object.values(config.upstreams).some(({ simulate }) => simulate === true)
}
