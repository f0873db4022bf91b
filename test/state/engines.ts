/** The same state on every engine, each time fresh, with a clock that the test moves. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openState } from '../../plugins/state/index.js'
import type { State, StateConfig } from '../../plugins/state/types.js'
import { startRedis, withoutRedis } from './redis/server.js'

export interface Engine {
  readonly name: string
  readonly skip: string | false
  /** States that share everything: as many as processes would. Null where the engine shares nothing. */
  readonly open: (config?: Partial<Omit<StateConfig, 'engine' | 'url'>>) => Promise<OpenEngine>
}

export interface OpenEngine {
  readonly state: State
  readonly clock: { now: number }
  /** Another opening of the same state, as another process has it. */
  readonly another: (() => Promise<State>) | null
  readonly close: () => Promise<void>
}

const start = 1_700_000_000_000

function temporary (): { path: string, remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), 'llm-gateway-state-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

async function opened (config: StateConfig, shares: boolean, after: () => Promise<void>): Promise<OpenEngine> {
  const clock = { now: start }
  const now = (): number => clock.now
  const states = [await openState(config, now)]
  const another = async (): Promise<State> => {
    const state = await openState(config, now)
    states.push(state)
    return state
  }
  const [state] = states
  if (state === undefined) throw new Error('unreachable')
  const close = async (): Promise<void> => {
    for (const each of states) await each.close()
    await after()
  }
  return { state, clock, another: shares ? another : null, close }
}

// The machine may be busy with other tests: a store that is only slow must not be taken for one that is gone.
const patient = { commandTimeoutMs: 5_000 }

function redisEngine (name: string, cluster: boolean): Engine {
  return {
    name,
    skip: withoutRedis,
    open: async (config = {}) => {
      const server = await startRedis({ cluster })
      const { path, remove } = temporary()
      return await opened({ engine: 'redis', url: server.url, cluster, path, ...patient, ...config }, true, async () => {
        await server.stop()
        remove()
      })
    },
  }
}

export const engines: readonly Engine[] = [
  { name: 'memory', skip: false, open: async (config = {}) => await opened({ engine: 'memory', ...config }, false, async () => {}) },
  {
    name: 'lmdb',
    skip: false,
    open: async (config = {}) => {
      const { path, remove } = temporary()
      return await opened({ engine: 'lmdb', path, ...config }, true, async () => remove())
    },
  },
  redisEngine('redis', false),
  redisEngine('redis cluster', true),
]
