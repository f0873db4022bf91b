import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { didYouMean } from '../../plugins/core/config/did-you-mean.js'
import type { Limits } from '../../plugins/core/types.js'
import { ConfigError } from '../../plugins/standalone/config-error.js'
import type { GatewayConfig } from '../../plugins/standalone/config-types.js'
import { loadConfig } from '../../plugins/standalone/config.js'
import { ledgerPath, stateConfig } from '../../plugins/standalone/config-values.js'
import { openKeys, type KeyRecord, type KeyStore } from '../../plugins/state/index.js'
import { CommandError, UsageError, type Io } from '../io.js'

/** Opens the key store of the configuration for one step, unless it has no such `group`. Changes reach running gateways. */
export async function withStore (
  file: string, io: Io, step: (store: KeyStore, config: GatewayConfig) => Promise<void>, group?: string
): Promise<void> {
  const config = loadConfig(file, io.env)
  if (group !== undefined) checkGroup(group, config)
  const where = stateConfig(config)
  if (where.engine === 'memory') {
    throw new ConfigError([{
      path: 'state.engine', message: 'is memory, which a command cannot share with a running gateway: its only keys are those of the file',
    }])
  }
  const folder = resolve(dirname(ledgerPath(config)))
  const isNew = where.engine === 'lmdb' && !existsSync(folder)
  const { keys, close } = await openKeys(where)
  try {
    // Only now is it known that the folder could be made: one that may not be looked into is not there either, for `existsSync`.
    if (isNew) io.err(`${folder} is new: a gateway whose state is in another folder does not see its keys`)
    await step(keys, config)
  } finally {
    await close()
  }
}

/** The only id among the arguments. Throws UsageError. */
export function onlyId (action: string, [id, ...more]: readonly string[]): string {
  if (id === undefined || more.length > 0) throw new UsageError(`keys ${action} takes the id of one key`)
  return id
}

/** Throws CommandError if the configuration has no such group. */
export function checkGroup (group: string, { groups }: GatewayConfig): void {
  if (!Object.hasOwn(groups, group)) throw new CommandError(`there is no group ${group}${didYouMean(group, Object.keys(groups))}`)
}

/** Throws CommandError for a budget in money if nothing has a price: every request of its key would be refused for that. */
export function checkPriced ({ budgets = [] }: Limits, { prices: { files = [], models = {} } = {} }: GatewayConfig): void {
  if (files.length === 0 && Object.keys(models).length === 0 && budgets.some(({ cost }) => cost !== undefined)) {
    throw new CommandError('a budget in money needs prices: without a price list nothing costs anything')
  }
}

/** A key by its id. Throws CommandError. */
export async function keyOf (store: KeyStore, id: string, config: GatewayConfig): Promise<KeyRecord> {
  return orRefuse(await store.read(id), id, config)
}

/** Returns a key that was found. Throws CommandError if there is none. */
export function orRefuse<T> (found: T | null, id: string, { keys = [] }: GatewayConfig): T {
  if (found !== null) return found
  throw new CommandError(
    keys.some((key) => key.id === id) ? `key ${id} is in the configuration: change it there` : `there is no key ${id}`
  )
}
