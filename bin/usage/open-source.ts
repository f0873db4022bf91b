import { ConfigError } from '../../plugins/standalone/config-error.js'
import type { GatewayConfig } from '../../plugins/standalone/config-types.js'
import { ledgerPath, stateConfig } from '../../plugins/standalone/config-values.js'
import { wrongLogins } from '../../plugins/state/options.js'
import { configOption } from '../args.js'
import type { Io } from '../io.js'
import { ledgerSource } from './files.js'
import type { Source } from './source.js'
import { storeSource } from './store.js'

/** The options of all commands that read the ledger. */
export const ledgerOptions = {
  ...configOption,
  from: { type: 'string' },
  to: { type: 'string' },
  timezone: { type: 'string', default: 'UTC' },
  local: { type: 'boolean', default: false },
} as const

/** The usage store, with the usage of all hosts, if one is configured; otherwise this host's ledger. Throws for what cannot be used. */
export async function openSource (config: GatewayConfig, local: boolean, io: Io): Promise<Source> {
  const { engine, usageStore } = stateConfig(config)
  if (engine === 'memory') throw new ConfigError([{ path: 'state.engine', message: 'is memory: its usage ends with the gateway' }])
  if (usageStore === undefined || local) return ledgerSource(ledgerPath(config), io)
  const [unusable] = wrongLogins({ usageStore })
  if (unusable !== undefined) throw unusable
  return await storeSource(usageStore)
}
