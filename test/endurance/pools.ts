/**
 * A pool whose members fail in their own ways, under load: one is killed, one hangs, one answers 30 % with 503, and one is well.
 * No caller sees a failure that a healthy member could have served, and the load is not multiplied.
 */
import { setTimeout as wait } from 'node:timers/promises'
import Fastify from 'fastify'
import { gatewayOf } from '../../plugins/core/gateway.js'
import llmGateway from '../../plugins/index.js'
import { call, gatewayOptions, listen, read } from '../helpers/gateway.js'
import { replyFixture, startUpstream, type Upstream } from '../helpers/upstream.js'
import { quantile, type Report } from './processes.js'

export interface PoolsOptions {
  readonly requests: number
  readonly perSecond: number
  readonly attemptTimeoutMs: number
  /** Sends for each request. Few requests have a budget of three retries at once, which is more than a fifth of them. */
  readonly maxAmplification: number
}

const whole = { json: replyFixture('chat_completions.json').toString(), sse: replyFixture('chat_completions.include_usage.sse').toString() }

export async function pools ({ requests, perSecond, attemptTimeoutMs, maxAmplification }: PoolsOptions): Promise<Report> {
  const [killed, hung, shaky, well] = [await startUpstream(), await startUpstream(), await startUpstream(), await startUpstream()]
  const members = { killed, hung, shaky, well }
  const app = Fastify()
  await app.register(llmGateway, gatewayOptions('', {
    upstreams: Object.fromEntries(Object.entries(members).map(([name, { url }]) => [name, { url, credential: 'x' }])),
    pools: { pool: { members: Object.keys(members), attempts: 4, retryOn: ['connect', 'reset', 'timeout', 429, 503, 529], attemptTimeoutMs, affinity: 'none' } },
    groups: { all: { protocols: ['chat_completions'], upstream: 'pool', limits: { concurrency: 1_000_000, balance: 1_000_000_000 } } },
    log: false,
  }))
  const origin = await listen(app)
  const violations: string[] = []
  const times: number[] = []
  async function one (stream: boolean): Promise<void> {
    const since = performance.now()
    const body = JSON.stringify({ model: 'gpt-5', stream, ...stream && { stream_options: { include_usage: true } }, messages: [{ role: 'user', content: 'Hi' }] })
    const reply = await call(`${origin}/v1/chat/completions`, { body }).reply
    const { bytes } = await read(reply)
    times.push(performance.now() - since)
    if (reply.statusCode !== 200) violations.push(`a caller got ${reply.statusCode}: ${bytes.toString().slice(0, 200)}`)
    else if (bytes.toString() !== (stream ? whole.sse : whole.json)) violations.push('a reply is not one member\'s')
  }
  await Promise.all([one(false), one(true)])
  await killed.close()
  hung.respond = () => ({ stallAt: 'headers' })
  let asked = 0
  shaky.respond = () => {
    asked += 1
    return asked % 10 < 3 ? { status: 503, body: { error: { message: 'overloaded' } } } : null
  }
  const before = sends(members)
  const running: Array<Promise<void>> = []
  for (let sent = 0; sent < requests; sent += 1) {
    running.push(one(sent % 4 === 0))
    await wait(1_000 / perSecond)
  }
  await Promise.all(running)
  const amplification = (sends(members) - before) / requests
  if (amplification > maxAmplification) violations.push(`${amplification} sends for each request`)
  // Once the breakers are open, the dead ones cost nobody anything.
  const early = times.length
  for (let sent = 0; sent < 100; sent += 1) await one(false)
  const lateP99Ms = quantile(times.slice(early), 0.99)
  const gateway = gatewayOf(app)
  const metric = (name: string): number => (gateway.metrics.find((each) => each.name === `llm_gateway_${name}`)?.read() ?? []).reduce((sum, value) => sum + Number(Reflect.get(value, 'value')), 0)
  const active = metric('upstream_active_requests')
  if (active !== 0) violations.push(`${active} requests still count as active`)
  await app.close()
  await Promise.all([hung, shaky, well].map(async (member) => await member.close()))
  return { violations, slow: [], requests, amplification, attempts: metric('upstream_attempts_total'), failovers: metric('failovers_total'), medianMs: quantile(times, 0.5), p99Ms: quantile(times, 0.99), lateP99Ms }
}

function sends (members: Readonly<Record<string, Upstream>>): number {
  return Object.values(members).reduce((sum, { seen }) => sum + seen.length, 0)
}
