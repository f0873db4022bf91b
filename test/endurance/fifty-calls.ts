/** A balance for so many calls, more callers than that at once, several processes: not one call too many. */
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { accountIn, holdsIn } from './lmdb-contents.js'
import { openLmdb } from '../../plugins/state/lmdb/open.js'
import { startRedis } from '../state/redis/server.js'
import { createCaller, floorTokens, inParallel } from './caller.js'
import { ledgerIn, launchGateway, sum, temporaryFolder, type Report } from './processes.js'
import { startProvider } from './provider.js'
import { join } from 'node:path'

const maxTokens = 64
/** The input's estimate and all of the output: what a request holds, and here also what it uses. */
const callTokens = floorTokens + maxTokens
const secret = 'sk-fifty-calls'

/** The group's account, and what the open holds add up to, seen at one moment. */
interface Sample {
  readonly spent: number
  readonly held: number
  readonly active: number
  readonly openTokens: number
  readonly open: number
}

interface Store {
  readonly state: object
  readonly sample: () => Promise<Sample>
  readonly close: () => Promise<void>
}

export interface FiftyCalls {
  readonly engine: 'redis' | 'lmdb'
  readonly calls: number
  readonly requests: number
  readonly processes: number
}

export async function fiftyCalls ({ engine, calls, requests, processes }: FiftyCalls): Promise<Report> {
  const folder = temporaryFolder()
  const store = await stores[engine](folder.path)
  const provider = await startProvider({ delayMs: () => 20 + Math.random() * 200, usage: (_, most) => [floorTokens, most] })
  const caller = createCaller(requests)
  const balance = calls * callTokens
  const config = {
    upstreams: { main: { url: provider.url, credential: 'provider-key' } },
    groups: { chat: { protocols: ['chat_completions'], limits: { balance } } },
    keys: [{ id: 'one', group: 'chat', secret }],
    state: store.state,
  }
  const gateways = await Promise.all(Array.from({ length: processes }, async () => await launchGateway(folder.path, config)))
  const over = new AbortController()
  const sampling = watch(store.sample, balance, over.signal)
  const answers = await inParallel(requests, requests, async (i) => {
    return await caller.call(String(gateways[i % processes]?.origin), { secret, tag: `t${i}`, stream: i % 2 === 0, maxTokens })
  })
  let last = await store.sample()
  while (last.held > 0 || last.spent < balance) {
    await pause(20)
    last = await store.sample()
  }
  over.abort()
  const { violations, samples, least } = await sampling
  for (const gateway of gateways) await gateway.kill('SIGTERM')
  const { records } = await ledgerIn(join(folder.path, 'data', 'ledger'))
  const served = answers.filter(({ status, whole }) => status === 200 && whole).length
  const refused = answers.filter(({ status }) => status === 403).length
  const expect = (what: string, is: number, should: number): void => { if (is !== should) violations.push(`${what}: ${is}, not ${should}`) }
  expect('served', served, calls)
  expect('refused with 403', refused, requests - calls)
  expect('requests that reached the provider', provider.seen.size, calls)
  expect('spent', last.spent, balance)
  expect('in the ledger', sum(records.map(({ charged }) => charged)), balance)
  await caller.close()
  await provider.close()
  await store.close()
  folder.remove()
  return { violations, slow: [], engine, processes, requests, served, refused, samples, leastAvailable: least, spent: last.spent, balance }
}

/** Looks at the store all the time: nothing is ever created or lost, nothing is overdrawn. */
async function watch (
  look: Store['sample'], balance: number, over: AbortSignal
): Promise<{ violations: string[], samples: number, least: number }> {
  const violations: string[] = []
  let samples = 0
  let least = balance
  let before = 0
  while (!over.aborted) {
    const { spent, held, active, openTokens, open } = await look()
    const available = balance - spent - held
    samples += 1
    least = Math.min(least, available)
    if (available < 0) violations.push(`available ${available}`)
    if (held !== openTokens) violations.push(`held ${held}, open holds have ${openTokens}`)
    if (active > open) violations.push(`active ${active} of ${open} open holds`)
    if (spent < before || spent % callTokens !== 0) violations.push(`spent ${spent} after ${before}`)
    before = spent
    await pause(1)
  }
  return { violations, samples, least }
}

const redisSample = `
local account = redis.call('HMGET', KEYS[1], 's', 'h', 'a')
local tokens, open = 0, 0
for _, packed in ipairs(redis.call('HVALS', KEYS[2])) do
  local hold = cmsgpack.unpack(packed)
  if hold.state == 'open' then tokens, open = tokens + hold.tokens, open + 1 end
end
return { tonumber(account[1]) or 0, tonumber(account[2]) or 0, tonumber(account[3]) or 0, tokens, open }
`

const stores: Readonly<Record<FiftyCalls['engine'], (folder: string) => Promise<Store>>> = {
  redis: async () => {
    const server = await startRedis()
    const client = new Redis(server.url)
    return {
      // The machine has fewer processors than this has processes: slow is not down.
      state: { engine: 'redis', url: server.url, path: './data', commandTimeoutMs: 30_000 },
      sample: async () => {
        const reply = await client.eval(redisSample, 2, 'llm-gateway:{chat}:accounts', 'llm-gateway:{chat}:holds')
        const [spent = 0, held = 0, active = 0, openTokens = 0, open = 0] = Array.isArray(reply) ? reply.map(Number) : []
        return { spent, held, active, openTokens, open }
      },
      close: async () => {
        client.disconnect()
        await server.stop()
      },
    }
  },
  lmdb: async (folder) => {
    const files = await openLmdb(join(folder, 'data'))
    return {
      state: { engine: 'lmdb', path: './data' },
      sample: async () => files.writeBalances(() => {
        const { spent = 0, held = 0, active = 0 } = accountIn(files, 'g:chat') ?? {}
        const open = [...holdsIn(files, 'chat').values()].filter(({ state }) => state === 'open')
        return { spent, held, active, openTokens: sum(open.map(({ tokens }) => tokens)), open: open.length }
      }),
      close: files.close,
    }
  },
}
