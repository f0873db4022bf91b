import { once } from 'node:events'
import { request } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { call, listen, read, secret, startGateway, type Gateway } from '../helpers/gateway.js'
import { startUpstream, type Upstream } from '../helpers/upstream.js'
import { samplesOf, sumOf } from './meters.js'
import { overheadOf } from '../../plugins/core/call/measures.js'
import { settledRequest } from './requests.js'

// Timers may be a millisecond early.
const slackMs = 5
const chat = '{"model":"gpt-5","stream":true,"messages":[{"role":"user","content":"hi"}]}'

type SecondsOf = (name: string) => number

interface Running extends Gateway {
  readonly upstream: Upstream
  readonly url: string
  /** What a first request took: loading and compiling, which is work that a wait may hide. */
  readonly warmUp: SecondsOf
}

async function start (t: Test, prepare: (app: Gateway['app']) => void = () => {}): Promise<Running> {
  const upstream = await startUpstream(t)
  const gateway = await startGateway(t, upstream.url)
  prepare(gateway.app)
  const url = `${await listen(gateway.app)}/v1/chat/completions`
  await read(await call(url, { body: chat }).reply)
  return { ...gateway, upstream, url, warmUp: await sumsOf(gateway, 1) }
}

/** Seconds by name of all requests, once the next one is settled. */
async function sumsOf ({ app, settled }: Gateway, requests: number): Promise<SecondsOf> {
  await settled.next()
  const samples = samplesOf((await app.inject('/metrics')).body)
  t.equal(sumOf(samples, 'llm_gateway_overhead_seconds_count'), requests)
  return (name) => sumOf(samples, `llm_gateway_${name}_seconds_sum`)
}

/** Seconds by name of the one request after the first. */
async function secondsOf (running: Running): Promise<SecondsOf> {
  const sums = await sumsOf(running, 2)
  return (name) => sums(name) - running.warmUp(name)
}

/**
 * A wait that counted would make the overhead longer than the shortest wait, and, as the same clock gave all times, longer
 * than what is left besides the waits. Either alone may be so by chance: what a gateway does while its caller waits before it
 * sends on is work, and a busy machine works for long.
 */
function holdsNoWait (t: Test, seconds: SecondsOf, waitsMs: readonly number[]): void {
  const overhead = seconds('overhead')
  const rest = seconds('request_duration') - waitsMs.reduce((sum, waitMs) => sum + waitMs, -slackMs) / 1_000
  const shortest = (Math.min(...waitsMs) - slackMs) / 1_000
  t.ok(overhead > 0)
  t.ok(overhead < shortest || overhead <= rest, `${overhead} of ${rest} besides the waits, the shortest ${shortest}`)
}

t.test('waits for the upstream and for the caller\'s body are no overhead', async (t) => {
  let begun = (): void => {}
  const running = await start(t, (app) => app.addHook('onRequest', async () => begun()))
  const waits = { body: 300, firstChunk: 300, middle: 300 }
  running.upstream.queue({ split: [100], before: async (write) => await setTimeout([waits.firstChunk, waits.middle][write]) })
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'content-length': chat.length }
  const sent = request(running.url, { method: 'POST', agent: false, headers })
  // What it waits before the gateway has its headers is none of the gateway's waits.
  const arrived = new Promise<void>((resolve) => { begun = resolve })
  sent.write(chat.slice(0, 20))
  await arrived
  await setTimeout(waits.body)
  sent.end(chat.slice(20))
  const [reply] = await once(sent, 'response')
  await read(reply)
  const seconds = await secondsOf(running)
  holdsNoWait(t, seconds, Object.values(waits))
  t.ok(seconds('time_to_first_chunk') >= (waits.body + waits.firstChunk - slackMs) / 1_000)
})

t.test('nor are waits for headers that come long before the body', async (t) => {
  const running = await start(t)
  running.upstream.queue({
    split: [1],
    before: async (write) => { if (write === 1) await setTimeout(300) },
  })
  await read(await call(running.url, { body: chat.replace(',"stream":true', '') }).reply)
  holdsNoWait(t, await secondsOf(running), [300])
})

t.test('nor are waits for a caller that reads slowly', async (t) => {
  const running = await start(t)
  running.upstream.queue({ body: `{"padding":"${'x'.repeat(16 * 1024 * 1024)}"}`, headers: { 'content-type': 'application/json' } })
  const reply = await call(running.url, { body: chat }).reply
  await setTimeout(300)
  await read(reply)
  holdsNoWait(t, await secondsOf(running), [300])
})

/** Keeps the process busy, as a host's hook might. */
function work (ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until);
}

t.test('work before the request and on the reply is overhead, whole or streamed', async (t) => {
  for (const stream of [false, true]) {
    const running = await start(t, (app) => {
      app.addHook('preHandler', (_request, _reply, done) => {
        work(30)
        done()
      })
      app.addHook('onSend', (_request, _reply, payload, done) => {
        work(40)
        done(null, payload)
      })
    })
    await read(await call(running.url, { body: stream ? chat : chat.replace(',"stream":true', '') }).reply)
    const seconds = await secondsOf(running)
    t.ok(seconds('overhead') >= 0.07, `${seconds('overhead')}`)
  }
})

t.test('a request that never went to an upstream has none', async (t) => {
  t.equal(overheadOf(settledRequest({ at: { sent: 0 } })), null)
  t.equal(Math.round(1e6 * Number(overheadOf(settledRequest({ upstreamReply: { workMs: 3 } })))), 5_000)
})
