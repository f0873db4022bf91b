/** The parts that every request passes, each against the obvious alternative. */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { Counter, Registry } from 'prom-client'
import { digestOf } from '../../../plugins/auth/keys.js'
import { KeyCache } from '../../../plugins/auth/key-cache.js'
import { catalogue } from '../../../plugins/metrics/catalogue.js'
import { Counter as Cells } from '../../../plugins/metrics/families.js'
import { createResolve } from '../../../plugins/core/url/resolve.js'
import { endpoints } from '../../../plugins/protocols/index.js'
import { DocumentReader } from '../../../plugins/usage/document-reader.js'
import { EventStreamReader } from '../../../plugins/usage/event-stream-reader.js'
import { JsonScanner } from '../../../plugins/usage/json-scanner.js'
import { Meter } from '../../../plugins/usage/meter.js'
import { planOf } from '../../../plugins/usage/plan.js'
import { readJson } from '../../../plugins/validation/json.js'
import { readSchemas } from '../../../plugins/validation/schemas.js'
import { callerKey, chatWork, imageWork, streamWork } from '../work.js'
import { measure, type Measured } from './timing.js'

const chunkBytes = 64 * 1024

function pieces (bytes: Buffer): Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / chunkBytes) }, (_, at) => bytes.subarray(at * chunkBytes, (at + 1) * chunkBytes))
}

function planFor (endpointId: string): ReturnType<typeof planOf> {
  const usage = endpoints.find(({ id }) => id === endpointId)?.usage
  if (usage === undefined || usage === null) throw new Error(`${endpointId} is not metered`)
  return planOf(usage)
}

export function scanners (): Measured[] {
  const scan = (endpointId: string, bytes: Buffer): (() => Meter) => {
    const plan = planFor(endpointId)
    return () => {
      const meter = new Meter(plan)
      const reader = new DocumentReader(plan, meter)
      for (const piece of pieces(bytes)) reader.read(piece)
      return meter
    }
  }
  const scanAlone = (bytes: Buffer): (() => Meter) => {
    const plan = planFor('chat_completions')
    return () => {
      const meter = new Meter(plan)
      const scanner = new JsonScanner(plan.search)
      scanner.push(bytes, 0, bytes.length)
      meter.take(scanner.found)
      return meter
    }
  }
  const parse = (bytes: Buffer) => () => JSON.parse(Buffer.concat(pieces(bytes)).toString()).usage
  const small = chatWork().reply
  const image = imageWork(10).reply
  return [
    measure('reply that came whole', '700 B', scan('chat_completions', small), 'JSON.parse', parse(small)),
    measure('reply scanner', '700 B', scanAlone(small), 'JSON.parse', parse(small)),
    measure('reply scanner', '10 MB image, 64 KB pieces', scan('images', image), 'concat, JSON.parse', parse(image)),
  ]
}

export function events (): Measured[] {
  const { pieces: written, reply } = streamWork('micro', 200, { kind: 'held' })
  const plan = planFor('chat_completions')
  const read = (): Meter => {
    const meter = new Meter(plan)
    const reader = new EventStreamReader(plan, meter)
    for (const piece of written) reader.read(piece)
    return meter
  }
  const parseEach = (): unknown => {
    let last: unknown = null
    for (const event of reply.toString().split('\n\n')) if (event.startsWith('data: {')) last = JSON.parse(event.slice(6))
    return last
  }
  return [measure('event reader', '200 events, one a piece', read, 'split, JSON.parse each', parseEach)]
}

export function validators (): Measured[] {
  const schema = readSchemas({}).get('chat_completions')
  return [1, 100, 10_240].flatMap((kilobytes) => {
    const json = {
      model: 'micro',
      messages: Array.from({ length: kilobytes }, () => ({ role: 'user', content: 'The quick brown fox jumps. '.repeat(36) })),
    }
    const request = Buffer.from(JSON.stringify(json))
    return [
      measure(
        'bytes to JSON, checked', `${kilobytes} KB`, () => readJson(request, { maxDepth: 256, maxValues: 1_000_000 }), 'JSON.parse',
        () => JSON.parse(request.toString())
      ),
      measure('schema', `${kilobytes} KB`, () => schema?.errorsOf(json), 'JSON.parse', () => JSON.parse(request.toString())),
    ]
  })
}

export async function lookups (): Promise<Measured[]> {
  const resolve = createResolve('')
  const cache = new KeyCache(
    { max: 10_000, ttlMs: 1e9, negativeMax: 1_000, negativeTtlMs: 5_000, staleMs: 0, maxLoads: 256, maxLoadsPerSecond: 1e9 }, () => {}
  )
  const keys = Array.from({ length: 1_024 }, (_, at) => `${callerKey}-${at}`)
  const digests = keys.map(digestOf)
  const table = new LRUCache<string, number>({ max: 10_000, ttl: 1e9 })
  for (const [at, each] of digests.entries()) table.set(each, at)
  const key = (at: number): string => keys[at & 1_023] ?? ''
  const digest = (at: number): string => digests[at & 1_023] ?? ''
  const models = ['m', 'n', 'o', 'p']
  const model = (at: number): string => models[at & 3] ?? ''
  const row = catalogue.requests_total
  const cells = new Cells<[string, string, string, string, string]>({ row, maxCells: 1_000, overflowed: () => {}, counted: null })
  const counter = new Counter({ name: 'micro_total', help: '-', labelNames: row.labels, registers: [new Registry()] })
  for (const each of digests) await cache.load(each, async () => ({ id: 'k', group: 'g', disabled: false, expiresAt: null, limits: {} }))
  return [
    measure(
      'path', 'canonical', () => resolve('POST', '/v1/chat/completions', {}), 'new URL', () => new URL('/v1/chat/completions', 'http://h')
    ),
    measure(
      'path', 'doubled prefix', () => resolve('POST', '/v1/v1/chat/completions', {}), 'new URL',
      () => new URL('/v1/v1/chat/completions', 'http://h')
    ),
    measure(
      'credential digest', 'one of 1,024 keys', at => digestOf(key(at)), 'createHash',
      at => createHash('sha256').update(key(at)).digest('hex')
    ),
    measure('key cache hit', 'one of 1,024 keys', at => cache.peek(digest(at)), 'lru-cache with ttl', at => table.get(digest(at))),
    measure(
      'cell update',
      '5 labels, 4 models',
      at => cells.add(1, 'chat_completions', 'bench', model(at), 'false', 'ok'),
      'prom-client inc',
      at => counter.inc({ protocol: 'chat_completions', group: 'bench', model: model(at), stream: 'false', outcome: 'ok' })
    ),
  ]
}
