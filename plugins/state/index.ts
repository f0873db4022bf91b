import { checkOptions, given, OptionError } from '../core/config/options.js'
import { FileLedger } from './ledger/file-ledger.js'
import { lmdbBalances } from './lmdb/balances.js'
import { lmdbKeys } from './lmdb/keys.js'
import { openLmdb } from './lmdb/open.js'
import { memoryBalances } from '../core/balances/memory.js'
import { memoryKeys } from './memory-keys.js'
import { memoryLedger } from './ledger/memory-ledger.js'
import { redisBalances } from './redis/balances.js'
import { redisKeys } from './redis/keys.js'
import { wrongLogins } from './password.js'
import { linkRedis } from './redis/link.js'
import { memoryNotes } from '../core/upstream/memory-notes.js'
import { lmdbNotes, redisNotes } from './notes.js'
import { defaultPath, ledgerFolder } from './ledger/read.js'
import { recover } from './ledger/recover.js'
import { RecoveredSettlements } from './ledger/recovered-settlements.js'
import { readUsageStore } from './usage-store/options.js'
import { Shipper } from './usage-store/shipper.js'
import type { Ledger, State, StateConfig } from './types.js'

export type * from './types.js'
export { memoryBalances, memoryKeys, memoryLedger }

type Clock = (() => number) | undefined

const defaults = { prefix: 'llm-gateway', holdTtlMs: 60_000 }

const stateChecks = {
  anything: ['engine'],
  'a string': ['path', 'url', 'prefix'],
  'an object': ['password', 'sentinel', 'ledger', 'usageStore'],
  'a boolean': ['cluster'],
  'a whole number of 1 to 2147483647': ['commandTimeoutMs', 'holdTtlMs'],
}

const redisOnly = ['url', 'password', 'cluster', 'sentinel', 'prefix', 'commandTimeoutMs'] as const

const ledgerChecks = { 'a whole number of at least 1': ['maxFileBytes', 'maxFileAgeMs', 'keepMs'] }

/**
 * Opens the engine that a configuration names. Rejects with `LLM_GATEWAY_OPTION` for a wrong option, with `LLM_GATEWAY_MISSING_PEER` if the
 * engine's package is not installed, or with the engine's own error. `now` replaces every clock, for tests.
 */
export async function openState (config: StateConfig, now?: Clock): Promise<State> {
  const opened = await openEngine(config, now)
  try {
    return withLedger(opened, config, now)
  } catch (error) {
    // An open connection would keep the process alive.
    await opened.close()
    throw error
  }
}

function withLedger ({ keys, balances, notes, notice, close: end }: Opened, config: StateConfig, now: Clock): State {
  const ledger = config.engine === 'memory' ? memoryLedger() : new FileLedger(ledgerFolder(config), config.ledger, now)
  const shipper = shipperOf(config, ledger, now)
  shipper?.start()
  const closing = new AbortController()
  const settlements = new RecoveredSettlements()
  const recovered = recover(ledger, balances, closing.signal, settlements)
  recovered.catch(() => {})
  const close = async (): Promise<void> => {
    closing.abort()
    await recovered.catch(() => {})
    await ledger.close()
    await end()
    await shipper?.close()
  }
  return { keys, balances: { ...balances, onRecovered: settlements.listen }, ledger, notes, notice, recovered, close }
}

/** Ships the process's records to the usage store; null without a store. */
function shipperOf (config: StateConfig, ledger: Ledger, now: () => number = Date.now): Shipper | null {
  const { usageStore } = config
  if (usageStore === undefined || !(ledger instanceof FileLedger)) return null
  const shipper = new Shipper({ folder: ledgerFolder(config), rules: readUsageStore(usageStore), owns: ledger.owns, now })
  ledger.shipBy(shipper)
  return shipper
}

/**
 * Opens the keys alone, for a command that changes them beside a running gateway: its machine need not have a ledger. Rejects as
 * `openState` does.
 */
export async function openKeys (config: StateConfig): Promise<Pick<State, 'keys' | 'close'>> {
  const { keys, close } = await openEngine(config)
  return { keys, close }
}

async function openEngine (config: StateConfig, now?: Clock): Promise<Opened> {
  // The names are checked, too: with a misspelled `path` the state would be kept in another place.
  checkOptions('state', config, stateChecks)
  checkOptions('state.ledger', config.ledger ?? {}, ledgerChecks)
  if (config.usageStore !== undefined) readUsageStore(config.usageStore)
  if (config.usageStore !== undefined && config.engine === 'memory') {
    throw new OptionError('state.usageStore', 'needs an engine that keeps records on the disk: lmdb or redis')
  }
  const open = engines.get(config.engine)
  if (open === undefined) throw new OptionError('state.engine', 'must be memory, lmdb or redis')
  const unread = config.engine === 'redis' ? undefined : redisOnly.find((name) => Reflect.get(config, name) !== undefined)
  if (unread !== undefined) throw new OptionError(`state.${unread}`, 'belongs to the engine redis')
  checkSentinel(config)
  const [unusable] = wrongLogins(config)
  if (unusable !== undefined) throw unusable
  const { end, ...parts } = await open(config, now)
  const close = async (): Promise<void> => {
    await parts.balances.close()
    await parts.keys.close()
    await end()
  }
  return { ...parts, close }
}

function checkSentinel ({ sentinel, cluster }: StateConfig): void {
  if (sentinel === undefined) return
  checkOptions('state.sentinel', sentinel, { 'a string': ['name'], 'an object': ['password'] })
  if (sentinel.name === undefined) throw new OptionError('state.sentinel.name', 'is required')
  if (cluster === true) throw new OptionError('state.sentinel', 'has no place beside cluster')
}

type Engine = Pick<State, 'keys' | 'balances' | 'notes' | 'notice'>

type Opened = Engine & Pick<State, 'close'>

type Open = (config: StateConfig, now: Clock) => Promise<Engine & { readonly end: () => Promise<void> }>

const engines: ReadonlyMap<string, Open> = new Map(Object.entries<Open>({
  memory: async ({ holdTtlMs = defaults.holdTtlMs }, now) => ({
    keys: memoryKeys(),
    balances: memoryBalances({ holdTtlMs, ...given({ now }) }),
    notes: memoryNotes(),
    notice: 'state.engine is memory: issued keys, balances and usage records are lost when the process ends',
    end: async () => {},
  }),
  lmdb: async ({ path = defaultPath, holdTtlMs = defaults.holdTtlMs }, now) => {
    const files = await openLmdb(path)
    return {
      keys: lmdbKeys(files),
      balances: lmdbBalances(files, { holdTtlMs, now }),
      notes: lmdbNotes(files, now),
      notice: null,
      end: files.close,
    }
  },
  redis: async (config, now) => {
    const { prefix = defaults.prefix, holdTtlMs = defaults.holdTtlMs } = config
    const link = await linkRedis(config)
    const keys = await redisKeys(link, prefix).catch(async (error: unknown) => {
      await link.close()
      throw error
    })
    return {
      keys,
      balances: redisBalances(link, { prefix, holdTtlMs, now }),
      notes: redisNotes(link, prefix),
      notice: link.notice,
      end: link.close,
    }
  },
}))
