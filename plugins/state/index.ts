import { given } from '../core/config/options.js'
import { FileLedger } from './ledger/file-ledger.js'
import { lmdbBalances } from './lmdb/balances.js'
import { lmdbKeys } from './lmdb/keys.js'
import { lmdbNotes } from './lmdb/notes.js'
import { openLmdb } from './lmdb/open.js'
import { memoryBalances } from '../core/balances/memory.js'
import { memoryKeys } from './memory-keys.js'
import { memoryLedger } from './ledger/memory-ledger.js'
import { redisBalances } from './redis/balances.js'
import { redisKeys } from './redis/keys.js'
import { linkRedis } from './redis/link.js'
import { redisNotes } from './redis/notes.js'
import { memoryNotes } from '../core/upstream/memory-notes.js'
import { checkState } from './options.js'
import { defaultPath, ledgerFolder } from './ledger/read.js'
import { recover } from './ledger/recover.js'
import { RecoveredSettlements } from './ledger/recovered-settlements.js'
import { readUsageStore } from './usage-store/options.js'
import { Shipper } from './usage-store/shipper.js'
import type { Ledger, State, StateConfig } from './types.js'

export type * from './types.js'
export { memoryBalances, memoryKeys, memoryLedger }

type Clock = (() => number) | undefined

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
  checkState(config)
  const { engine, holdTtlMs = 60_000 } = config
  const { end, ...parts } = await engines[engine](config, { holdTtlMs, ...given({ now }) })
  const close = async (): Promise<void> => {
    await parts.balances.close()
    await parts.keys.close()
    await end()
  }
  return { ...parts, close }
}

type Engine = Pick<State, 'keys' | 'balances' | 'notes' | 'notice'>

type Opened = Engine & Pick<State, 'close'>

interface HoldRules {
  readonly holdTtlMs: number
  readonly now?: () => number
}

type Open = (config: StateConfig, rules: HoldRules) => Promise<Engine & { readonly end: () => Promise<void> }>

const engines: Readonly<Record<StateConfig['engine'], Open>> = {
  memory: async (_, rules) => ({
    keys: memoryKeys(),
    balances: memoryBalances(rules),
    notes: memoryNotes(),
    notice: 'state.engine is memory: issued keys, balances and usage records are lost when the process ends',
    end: async () => {},
  }),
  lmdb: async ({ path = defaultPath }, rules) => {
    const files = await openLmdb(path)
    return {
      keys: lmdbKeys(files),
      balances: lmdbBalances(files, rules),
      notes: lmdbNotes(files, rules.now),
      notice: null,
      end: files.close,
    }
  },
  redis: async (config, rules) => {
    const { prefix = 'llm-gateway' } = config
    const link = await linkRedis(config)
    const keys = await redisKeys(link, prefix).catch(async (error: unknown) => {
      await link.close()
      throw error
    })
    return {
      keys,
      balances: redisBalances(link, { prefix, ...rules }),
      notes: redisNotes(link, prefix),
      notice: link.notice,
      end: link.close,
    }
  },
}
