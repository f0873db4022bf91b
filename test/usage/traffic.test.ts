/** Mixed traffic, with aborts and resets: what was counted is what the upstream says it reported, to the token, in every projection. */
import { setTimeout as wait } from 'node:timers/promises'
import * as zlib from 'node:zlib'
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import t, { type Test } from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import { modelCallOf, type ModelCall } from '../../plugins/core/call/model-call.js'
import type { TokenUsage } from '../../plugins/core/types.js'
import { call, listen, secret } from '../helpers/gateway.js'
import { replyFixture, Signal, startUpstream, usageOf, type Script } from '../helpers/upstream.js'
import { samplesOf } from '../metrics/meters.js'
import { hosts } from './hosts.js'
import { usageIn } from './meter-reply.js'
import { encoders } from './truth.js'

const requestCount = 500
const atOnce = 40

const headers = { 'x-api-key': secret, 'anthropic-version': '2023-06-01', 'x-goog-api-key': secret }
const chat = '"model":"m","messages":[{"role":"user","content":"hi"}]'
const contents = '{"contents":[{"parts":[{"text":"hi"}]}]}'
const kinds: readonly [fixture: string, url: string, body: string][] = [
  ['chat_completions.json', '/v1/chat/completions', `{${chat}}`],
  ['chat_completions.include_usage.sse', '/v1/chat/completions', `{"stream":true,${chat}}`],
  ['chat_completions.include_usage.sse', '/v1/chat/completions', `{"stream":true,"stream_options":{"include_usage":true},${chat}}`],
  ['responses.json', '/v1/responses', '{"model":"m","input":"hi"}'],
  ['responses.sse', '/v1/responses', '{"model":"m","input":"hi","stream":true}'],
  ['images.json', '/v1/images/generations', '{"model":"m","prompt":"hi"}'],
  ['images.sse', '/v1/images/generations', '{"model":"m","prompt":"hi","stream":true}'],
  ['embeddings.json', '/v1/embeddings', '{"model":"m","input":"hi"}'],
  ['messages.json', '/v1/messages', `{"max_tokens":9,${chat}}`],
  ['messages.sse', '/v1/messages', `{"max_tokens":9,"stream":true,${chat}}`],
  ['generate_content.json', '/v1beta/models/m:generateContent', contents],
  ['generate_content.stream.sse', '/v1beta/models/m:streamGenerateContent?alt=sse', contents],
  ['generate_content.stream.json', '/v1/models/m:streamGenerateContent', contents],
]

type Totals = Record<string, number>

function add (totals: Totals, protocol: string, usage: TokenUsage | null): void {
  for (const [type, tokens] of Object.entries(usage ?? {})) {
    if (tokens > 0) totals[`${protocol} ${type}`] = (totals[`${protocol} ${type}`] ?? 0) + tokens
  }
}

/** The same numbers in every run. */
let state = 7
function below (limit: number): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
  return (state >>> 8) % limit
}

interface Planned {
  readonly protocol: string
  readonly url: string
  readonly body: string
  readonly script: Script
  /** What the gateway can know of the reply's usage, which is what the upstream told it. */
  readonly tells: TokenUsage | null
  /** Why that may be nothing, null where the reply comes whole or is no success. */
  readonly cutShort: 'upstream_abort' | 'client_abort' | null
  /** The caller leaves when the gateway has so many bytes of the reply, and the upstream waits until it has left; null for never. */
  readonly leavesAt: number | null
  /** The caller leaves whenever it has so many pieces of its reply, Infinity for never. */
  readonly leavesAfter: number
}

const encodings = ['gzip', 'deflate', 'br'] as const

/** What can be read of a compressed reply that broke off. */
function decodedSoFar (encoding: typeof encodings[number], coded: Buffer): Buffer {
  if (coded.length === 0) return coded
  if (encoding === 'br') return zlib.brotliDecompressSync(coded, { finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH })
  return zlib.unzipSync(coded, { finishFlush: zlib.constants.Z_SYNC_FLUSH })
}

/**
 * Where a reply is read on after its caller has left, all of it counts. On a mount that nobody adapted it is the mount that
 * gives up the reply with its caller: there counts what had come until then.
 */
function plan (drains: boolean): Planned {
  const [fixture = '', url = '', body = ''] = kinds[below(kinds.length)] ?? []
  const bytes = replyFixture(fixture)
  const protocol = usageOf[fixture]?.protocol ?? ''
  const whole = usageOf[fixture]?.leaves ?? null
  const script: Script = below(2) === 0 ? { split: 'events' } : {}
  const planned = { protocol, url, body, script, tells: whole, cutShort: null, leavesAt: null, leavesAfter: Infinity }
  const encoding = encodings[below(encodings.length)] ?? 'gzip'
  const coded = encoders[encoding]?.(bytes) ?? bytes
  const cutAt = 1 + below(bytes.length - 1)
  const codedCutAt = 1 + cutAt % (coded.length - 1)
  const told = usageIn(protocol, bytes.subarray(0, cutAt))
  const codedTold = usageIn(protocol, decodedSoFar(encoding, coded.subarray(0, codedCutAt)))
  const byCaller = drains ? {} : { cutShort: 'client_abort' as const }
  switch (below(12)) {
    case 0: return { ...planned, script: { ...script, cutAt }, tells: told, cutShort: 'upstream_abort' }
    case 1: return { ...planned, script: { encoding, cutAt: codedCutAt }, tells: codedTold, cutShort: 'upstream_abort' }
    case 2: return { ...planned, script: { cutAt: 'headers' }, tells: null }
    case 3: return {
      ...planned,
      script: { status: 429, body: '{"error":{"message":"slow down"},"usage":{"prompt_tokens":1,"input_tokens":1}}' },
      tells: null,
    }
    case 4: return { ...planned, script: { encoding } }
    case 5: case 6: return { ...planned, ...byCaller, tells: drains ? whole : told, leavesAt: cutAt }
    case 7: return { ...planned, ...byCaller, script: { encoding }, tells: drains ? whole : codedTold, leavesAt: codedCutAt }
    case 8: return { ...planned, tells: null, cutShort: 'client_abort', leavesAt: 0 }
    case 9: return drains ? { ...planned, leavesAfter: below(3) } : planned
    default: return planned
  }
}

/** The upstream's part of a caller's leaving: silent for ever, or for as long as the caller is there. */
function untilLeft (script: Script, leavesAt: number, drains: boolean, left: Promise<void>): Script {
  if (leavesAt === 0) return { stallAt: 'headers' }
  if (!drains) return { ...script, stallAt: leavesAt }
  return { ...script, split: [leavesAt], before: async (write) => { if (write === 1) await left } }
}

/** The gateway's requests, by the number that the test gave them. */
function watchRequests (app: FastifyInstance): Map<string, FastifyRequest> {
  const requests = new Map<string, FastifyRequest>()
  app.addHook('onRequest', (request, _reply, done) => {
    requests.set(String(request.headers['x-case']), request)
    done()
  })
  return requests
}

for (const host of hosts.slice(0, 3)) {
  t.test(`${host.name}: an hour in a minute`, async (t) => await runTraffic(t, host))
}

async function runTraffic (t: Test, host: typeof hosts[0]): Promise<void> {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const meterProvider = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })] })
  const upstream = await startUpstream(t)
  const { app } = await host.start(t, upstream.url, { metrics: { meterProvider }, forward: { drain: { maxConcurrent: requestCount } } })
  t.teardown(async () => await meterProvider.shutdown())
  const requests = watchRequests(app)
  const callOf = (id: string): ModelCall | null => modelCallOf(requests.get(id) ?? Object(null))
  const base = await listen(app)
  const reported: Totals = {}
  const untold: Totals = {}
  const settled: Totals = {}
  const outcomes: Totals = {}
  const settlements = new Signal<string>()
  gatewayOf(app).settlement.onSettled((llm) => {
    add(settled, llm.protocol, llm.usage.tokens)
    settlements.push(String(llm.outcome))
  })
  const scripts = new Map<string, Script>()
  const arrived = new Set<string>()
  upstream.respond = (request) => {
    const id = String(request.headers['x-case'])
    arrived.add(id)
    return scripts.get(id) ?? null
  }

  async function send (index: number): Promise<void> {
    const id = String(index)
    const { protocol, url, body, script, tells, cutShort, leavesAt, leavesAfter } = plan(host.drains)
    let leave = (): void => {}
    const left = new Promise<void>((resolve) => { leave = resolve })
    scripts.set(id, leavesAt === null ? script : untilLeft(script, leavesAt, host.drains, left))
    add(reported, protocol, tells)
    if (tells === null && cutShort !== null) untold[`${protocol} ${cutShort}`] = (untold[`${protocol} ${cutShort}`] ?? 0) + 1
    const { request, reply } = call(base + url, { headers: { ...headers, 'x-case': id }, body })
    if (leavesAt !== null) {
      while (!arrived.has(id) || (callOf(id)?.upstreamReply.bytes ?? 0) < leavesAt) await wait(1)
      request.destroy()
      // A compressed reply may have had its last event by then.
      while (callOf(id)?.times.endedAt === 0) await wait(1)
      leave()
      return
    }
    let pieces = 0
    try {
      for await (const piece of await reply) {
        pieces += Math.sign(piece.length)
        if (pieces > leavesAfter) break
      }
    } catch {
      // The upstream broke off, and so did the gateway.
    }
    request.destroy()
  }

  let sent = 0
  await Promise.all(Array.from({ length: atOnce }, async () => {
    while (sent < requestCount) await send(sent++)
  }))
  for (let count = 0; count < requestCount; count++) {
    const outcome = await settlements.next()
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
  }
  t.equal(settlements.size, 0, 'each is settled once')
  for (const outcome of ['ok', 'client_abort', 'truncated', 'upstream_error', 'client_error']) {
    t.ok((outcomes[outcome] ?? 0) > 20, `${outcome}: ${outcomes[outcome] ?? 0}`)
  }
  t.strictSame(sorted(settled), sorted(reported), 'settled as reported')

  for (const { protocol } of Object.values(usageOf)) t.ok(Object.keys(reported).some((name) => name.startsWith(protocol)), protocol)

  const text = (await app.inject('/metrics')).body
  t.strictSame(sorted(summedBy('tokens_total', 'type', text)), sorted(reported), 'Prometheus as reported')
  t.strictSame(sorted(summedBy('usage_missing_total', 'reason', text)), sorted(untold), 'missing where nothing was told')

  await meterProvider.forceFlush()
  const metrics = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics).flatMap((scope) => scope.metrics)
  const openTelemetry: Totals = {}
  for (const { attributes, value } of metrics.findLast(({ descriptor }) => descriptor.name === 'llm_gateway.tokens')?.dataPoints ?? []) {
    const name = `${String(attributes['protocol'])} ${String(attributes['type'])}`
    if (Number(value) > 0) openTelemetry[name] = (openTelemetry[name] ?? 0) + Number(value)
  }
  t.strictSame(sorted(openTelemetry), sorted(reported), 'OpenTelemetry as reported')
}

/** The samples of one metric, by protocol and another label. */
function summedBy (metric: string, label: string, text: string): Totals {
  const totals: Totals = {}
  for (const [sample, value] of samplesOf(text)) {
    if (!sample.startsWith(`llm_gateway_${metric}{`) || value === 0) continue
    const [protocol, other] = ['protocol', label].map((name) => new RegExp(`[{,]${name}="(\\w+)"`).exec(sample)?.[1])
    totals[`${protocol} ${other}`] = (totals[`${protocol} ${other}`] ?? 0) + value
  }
  return totals
}

function sorted (totals: Totals): [string, number][] {
  return Object.entries(totals).sort(([one], [other]) => one < other ? -1 : 1)
}
