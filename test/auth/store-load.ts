/** What real key stores are put through: very many keys, and floods of made-up ones. */
import { hash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import Fastify, { type FastifyInstance } from 'fastify'
import { KeyCache } from '../../plugins/auth/key-cache.js'
import llmGateway from '../../plugins/index.js'
import { openState, type KeyRecord, type KeyStore } from '../../plugins/state/index.js'
import { lmdbKeys } from '../../plugins/state/lmdb/keys.js'
import { openLmdb } from '../../plugins/state/lmdb/open.js'
import { gatewayOptions } from '../helpers/gateway.js'
import { startRedis } from '../state/redis/server.js'

export type EngineName = 'lmdb' | 'redis'

interface OpenStore {
  readonly keys: KeyStore
  /** Creates the keys numbered from `first` up to, without, `end`. */
  readonly fill: (first: number, end: number) => Promise<void>
  readonly close: () => Promise<void>
}

const secretOf = (number: number): string => `sk-load-${number}`
const digestOf = (secret: string): string => hash('sha256', secret, 'hex')

function record (number: number): KeyRecord {
  const digest = digestOf(secretOf(number))
  return { id: `key-${number}`, digest, group: 'all', disabled: false, expiresAt: null, limits: {}, label: null, createdAt: number }
}

async function openStore (engine: EngineName): Promise<OpenStore> {
  const path = mkdtempSync(join(tmpdir(), 'llm-gateway-keys-'))
  return engine === 'lmdb' ? await openLmdbStore(path) : await openRedisStore(path)
}

async function openLmdbStore (path: string): Promise<OpenStore> {
  const files = await openLmdb(path)
  const keys = lmdbKeys(files)
  const fill = async (first: number, end: number): Promise<void> => {
    // One wait for the disk for many: they are steps of one transaction.
    for (let at = first; at < end; at += 10_000) {
      files.writeDurable(() => {
        for (let number = at; number < Math.min(end, at + 10_000); number += 1) keys.create(record(number))
      })
    }
  }
  const close = async (): Promise<void> => {
    await keys.close()
    await files.close()
    rmSync(path, { recursive: true })
  }
  return { keys, fill, close }
}

async function openRedisStore (path: string): Promise<OpenStore> {
  const server = await startRedis()
  const { keys, close: end } = await openState({ engine: 'redis', url: server.url, path, commandTimeoutMs: 60_000 })
  const fill = async (first: number, end: number): Promise<void> => {
    for (let at = first; at < end; at += 500) {
      const numbers = Array.from({ length: Math.min(500, end - at) }, (_, i) => at + i)
      await Promise.all(numbers.map(async (number) => await keys.create(record(number))))
    }
  }
  const close = async (): Promise<void> => {
    await end()
    await server.stop()
    rmSync(path, { recursive: true })
  }
  return { keys, fill, close }
}

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

function heapBytes (): number {
  collect()
  collect()
  return process.memoryUsage().heapUsed
}

export interface Growth {
  readonly keys: number
  /** Median time of one look-up in the store, and of one through a cache that holds far fewer keys. */
  readonly findUs: number
  readonly cachedUs: number
  readonly cacheEntries: number
  /** Heap that a full cache holds. */
  readonly cacheBytes: number
}

/** Look-ups in a store of each size, in ascending order, `samples` each. */
export async function growKeys (engine: EngineName, sizes: readonly number[], cacheMax: number, samples: number): Promise<Growth[]> {
  const { keys, fill, close } = await openStore(engine)
  const found: Growth[] = []
  let filled = 0
  for (const size of sizes) {
    await fill(filled, size)
    filled = size
    found.push(await lookUp(keys, size, cacheMax, samples))
  }
  await close()
  return found
}

async function lookUp (keys: KeyStore, size: number, cacheMax: number, samples: number): Promise<Growth> {
  const digests = Array.from({ length: samples }, () => digestOf(secretOf(Math.floor(Math.random() * size))))
  const find = async (digest: string): Promise<void> => {
    if (await keys.find(digest) === null) throw new Error('a key is not found')
  }
  const options = { max: cacheMax, ttlMs: 3_600_000, negativeMax: 1, negativeTtlMs: 1, staleMs: 0, maxLoads: 10, maxLoadsPerSecond: 1e9 }
  const cache = new KeyCache(options, () => {})
  const through = async (digest: string): Promise<void> => {
    if (cache.peek(digest) === undefined) await cache.load(digest, keys.find)
  }
  await medianUs(digests.slice(0, 1_000), find)
  const findUs = await medianUs(digests, find)
  const cachedUs = await medianUs(digests, through)
  const cacheEntries = cache.sizes.positive
  // With and without what it holds, and nothing between the two readings: whatever else a process keeps comes and goes.
  const full = heapBytes()
  cache.invalidate({ group: '*' })
  return { keys: size, findUs, cachedUs, cacheEntries, cacheBytes: full - heapBytes() }
}

async function medianUs (digests: readonly string[], step: (digest: string) => Promise<void>): Promise<number> {
  const times: number[] = []
  for (const digest of digests) {
    const since = performance.now()
    await step(digest)
    times.push(performance.now() - since)
  }
  times.sort((a, b) => a - b)
  return 1_000 * Number(times[Math.floor(times.length / 2)])
}

export interface Flood {
  readonly right: number
  readonly wrong: number
  /** Requests with a right key that were served, and how many of them from the cache. */
  readonly served: number
  readonly hits: number
  /** Replies to wrong keys, by status. */
  readonly refused: Readonly<Record<number, number>>
  readonly storeLookups: number
  /** How often right keys may have been asked for anew in the time that it took. */
  readonly renewals: number
  /** What the cap allows in that time, and the renewals. */
  readonly allowed: number
  readonly heapBytes: number
}

/**
 * 20 requests with a new made-up key to each one with one of 10 right keys, `rounds` times. Wrong ones come first, each time. The right
 * keys are in use before the flood begins.
 */
export async function flood (engine: EngineName, rounds: number, maxLoadsPerSecond: number, ttlMs = 30_000): Promise<Flood> {
  const { keys, fill, close } = await openStore(engine)
  await fill(0, 10)
  let storeLookups = 0
  const store = { onChange: keys.onChange, find: async (digest: string) => { storeLookups += 1; return await keys.find(digest) } }
  const upstream = createServer((_, response) => response.end('{}'))
  const address = await listenOn(upstream)
  const app = Fastify()
  await app.register(llmGateway, gatewayOptions(address, { keys: [], store, auth: { cache: { maxLoadsPerSecond, ttlMs } } }))
  const ask = async (secret: string): Promise<number> => {
    return (await app.inject({ url: '/v1/models', headers: { authorization: `Bearer ${secret}` } })).statusCode
  }
  const refused: Record<number, number> = {}
  let served = 0
  const round = async (number: number): Promise<void> => {
    const wrong = Array.from({ length: 20 }, async () => await ask(`sk-${randomBytes(24).toString('hex')}`))
    if (await ask(secretOf(number % 10)) === 200) served += 1
    for (const status of await Promise.all(wrong)) refused[status] = (refused[status] ?? 0) + 1
  }
  for (let number = 0; number < 10; number += 1) await ask(secretOf(number))
  const since = performance.now()
  // What any traffic takes once is taken before the heap is read for the first time.
  for (let number = 0; number < 100; number += 1) await round(number)
  const before = { heap: heapBytes(), hits: await hitsOf(app), served }
  for (let number = 0; number < rounds; number += 1) await round(number)
  const seconds = (performance.now() - since) / 1_000
  const renewals = 10 * Math.ceil(1 + 1_000 * seconds / ttlMs)
  const found = {
    right: rounds,
    wrong: 20 * rounds,
    served: served - before.served,
    hits: await hitsOf(app) - before.hits,
    refused,
    storeLookups,
    renewals,
    allowed: Math.ceil(maxLoadsPerSecond * (1 + seconds)) + renewals,
    heapBytes: heapBytes() - before.heap,
  }
  await app.close()
  upstream.close()
  await close()
  return found
}

async function listenOn (server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = Object(server.address())
  return `http://127.0.0.1:${port}`
}

/** Look-ups that the cache of known keys answered. */
async function hitsOf (app: FastifyInstance): Promise<number> {
  const { payload } = await app.inject('/metrics')
  return Number(/^llm_gateway_key_lookups_total\{result="hit"\} (\d+)/m.exec(payload)?.[1])
}
