import { join } from 'node:path'
import { checkOptions, OptionError } from '../core/options.js'
import { FileLedger } from './file-ledger.js'
import { lmdbBalances } from './lmdb-balances.js'
import { lmdbKeys } from './lmdb-keys.js'
import { openLmdb } from './lmdb-open.js'
import { memoryBalances } from '../core/balances/memory.js'
import { memoryKeys } from './memory-keys.js'
import { memoryLedger } from './memory-ledger.js'
import { redisBalances } from './redis-balances.js'
import { redisKeys } from './redis-keys.js'
import { wrongLogins } from './password.js'
import { linkRedis } from './redis-link.js'
import { lmdbNotes, memoryNotes, redisNotes } from './notes.js'
import { recover } from './recover.js'
import { RecoveredSettlements } from './recovered-settlements.js'
import { readUsageStore } from './usage-store/options.js'
import { Shipper } from './usage-store/shipper.js'
import type { Ledger, State, StateConfig } from './types.js'

export type * from './types.js'
export { memoryBalances, memoryKeys, memoryLedger }

type Clock = (() => number) | undefined

const defaults = { path: './data', prefix: 'llm-gateway', holdTtlMs: 60_000 }

const stateChecks = {
  engine: 'anything',
  path: 'a string',
  url: 'a string',
  password: 'an object',
  cluster: 'a boolean',
  sentinel: 'an object',
  prefix: 'a string',
  commandTimeoutMs: 'a whole number of at least 1',
  holdTtlMs: 'a whole number of at least 1',
  ledger: 'an object',
  usageStore: 'an object',
} as const

const redisOnly = ['url', 'password', 'cluster', 'sentinel', 'prefix', 'commandTimeoutMs'] as const

const ledgerChecks = {
  maxFileBytes: 'a whole number of at least 1',
  maxFileAgeMs: 'a whole number of at least 1',
  keepMs: 'a whole number of at least 1',
} as const

/**
 * Opens what a configuration names. Rejects with `LLM_GATEWAY_OPTION`, with `LLM_GATEWAY_MISSING_PEER` where the engine's
 * package is not installed, or with what the engine says. `now` replaces every clock, for tests.
 */
export async function openState (config: StateConfig, now?: Clock): Promise<State> {
  const { keys, balances, ledger, notes, notice, close: end } = await openEngine(config, now)
  const shipper = shipperOf(config, ledger, now)
  shipper?.start()
  const closing = new AbortController()
  const settlements = new RecoveredSettlements()
  const recovered = recover(ledger, balances, closing.signal, settlements)
  recovered.catch(() => {})
  const close = async (): Promise<void> => {
    closing.abort()
    await recovered.catch(() => {})
    await end()
    await shipper?.close()
  }
  return { keys, balances: { ...balances, onRecovered: settlements.listen }, ledger, notes, notice, recovered, close }
}

/** What the process's records go to the usage store by; null where there is none. */
function shipperOf ({ path = defaults.path, usageStore }: StateConfig, ledger: Ledger, now: () => number = Date.now): Shipper | null {
  if (usageStore === undefined || !(ledger instanceof FileLedger)) return null
  const shipper = new Shipper({ folder: join(path, 'ledger'), rules: readUsageStore(usageStore), owns: ledger.owns, now })
  ledger.shipBy(shipper)
  return shipper
}

/**
 * Its keys alone, for a command that changes them beside a gateway. What processes left unsettled is not looked at. Rejects as `openState`
 * does.
 */
export async function openKeys (config: StateConfig): Promise<Pick<State, 'keys' | 'close'>> {
  const { keys, close } = await openEngine(config)
  return { keys, close }
}

async function openEngine (config: StateConfig, now?: Clock): Promise<Omit<State, 'recovered'>> {
  // By name, too: a misspelled path would keep what must survive somewhere else.
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
  const { keys, balances, ledger } = parts
  const close = async (): Promise<void> => {
    await ledger.close()
    await balances.close()
    await keys.close()
    await end()
  }
  return { ...parts, close }
}

function checkSentinel ({ sentinel, cluster }: StateConfig): void {
  if (sentinel === undefined) return
  checkOptions('state.sentinel', sentinel, { name: 'a string', password: 'an object' })
  if (sentinel.name === undefined) throw new OptionError('state.sentinel.name', 'is required')
  if (cluster === true) throw new OptionError('state.sentinel', 'has no place beside cluster')
}

type Opened = Omit<State, 'close' | 'recovered'> & { readonly end: () => Promise<void> }

type Open = (config: StateConfig, now: Clock) => Promise<Opened>

const engines: ReadonlyMap<string, Open> = new Map(Object.entries<Open>({
  memory: async ({ holdTtlMs = defaults.holdTtlMs }, now) => ({
    keys: memoryKeys(),
    balances: memoryBalances({ holdTtlMs, ...(now === undefined ? {} : { now }) }),
    ledger: memoryLedger(),
    notes: memoryNotes(),
    notice: 'state.engine is memory: issued keys, balances and usage records are lost when the process ends',
    end: async () => {},
  }),
  lmdb: async ({ path = defaults.path, holdTtlMs = defaults.holdTtlMs, ledger }, now) => {
    const files = await openLmdb(path)
    return {
      keys: lmdbKeys(files),
      balances: lmdbBalances(files, { holdTtlMs, now }),
      ledger: new FileLedger(join(path, 'ledger'), ledger, now),
      notes: lmdbNotes(files, now),
      notice: null,
      end: files.close,
    }
  },
  redis: async (config, now) => {
    const { path = defaults.path, prefix = defaults.prefix, holdTtlMs = defaults.holdTtlMs } = config
    // Before there are connections: one that is left open when something fails would keep the process from its end.
    const ledger = new FileLedger(join(path, 'ledger'), config.ledger, now)
    const link = await linkRedis(config)
    const keys = await redisKeys(link, prefix).catch(async (error: unknown) => {
      await link.close()
      throw error
    })
    return {
      keys,
      balances: redisBalances(link, { prefix, holdTtlMs, ...(now === undefined ? {} : { now }) }),
      ledger,
      notes: redisNotes(link, prefix),
      notice: null,
      end: link.close,
    }
  },
}))
