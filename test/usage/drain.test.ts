/** After its caller has left, a reply is read on for its usage: so far and no further. */
import { setTimeout as wait } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import { call, callersGone, listen, secret } from '../helpers/gateway.js'
import { replyFixture, Signal, startUpstream, usageOf, type Upstream } from '../helpers/upstream.js'
import { hosts } from './hosts.js'

const fixture = 'chat_completions.include_usage.sse'
const reply = replyFixture(fixture)
const beforeUsage = reply.lastIndexOf('data: {')
const body = '{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}'
const longMs = 60_000
const mebi = 1024 * 1024

interface Stage {
  readonly upstream: Upstream
  readonly app: FastifyInstance
  readonly url: string
  readonly settled: Signal<{ usage: unknown, usageMissing: unknown }>
}

async function stage (
  t: Parameters<typeof startUpstream>[0] & { teardown: (close: () => unknown) => unknown }, host: typeof hosts[0], drain: object
): Promise<Stage> {
  const upstream = await startUpstream(t)
  const { app } = await host.start(t, upstream.url, { forward: { drain: { maxMs: longMs, ...drain } } })
  const settled: Stage['settled'] = new Signal()
  gatewayOf(app).settlement.onSettled(({ usage: { tokens: usage, missing: usageMissing } }) => settled.push({ usage, usageMissing }))
  return { upstream, app, url: `${await listen(app)}/v1/chat/completions`, settled }
}

/** A caller that takes so many bytes of its reply and leaves. Resolves when the gateway has seen it go. */
async function leaveAfter ({ app, url }: Stage, wanted: number): Promise<void> {
  const { request, reply } = call(url, { headers: { authorization: `Bearer ${secret}` }, body })
  const stream = await reply
  stream.on('error', () => {})
  let bytes = 0
  for await (const chunk of stream) {
    bytes += chunk.length
    if (bytes >= wanted) break
  }
  request.destroy()
  await callersGone(app)
}

/** The caller leaves before the usage comes; `send` lets the upstream go on. */
async function leaveBeforeUsage (scene: Stage, script: { stallAt?: number } = {}): Promise<{ send: () => void }> {
  let send = (): void => {}
  const sent = new Promise<void>((resolve) => { send = resolve })
  scene.upstream.queue({ fixture, split: [beforeUsage], before: async (write) => { if (write === 1) await sent }, ...script })
  await leaveAfter(scene, beforeUsage)
  return { send }
}

/** A caller that takes nothing of a large reply, and leaves once that has held the upstream back. */
async function leaveUnread ({ upstream, url }: Stage): Promise<void> {
  const text = 'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
  const large = Buffer.concat([Buffer.from(text.repeat(32 * mebi / text.length)), reply])
  let sent = 0
  upstream.queue({
    headers: { 'content-type': 'text/event-stream' },
    body: large,
    split: [...Array(31).keys()].map((index) => (index + 1) * mebi),
    before: (write) => { sent = write },
  })
  const { request, reply: message } = call(url, { headers: { authorization: `Bearer ${secret}` }, body })
  const stream = await message
  stream.pause()
  for (let seen = -1; seen !== sent || seen === 0;) {
    seen = sent
    await wait(150)
  }
  request.destroy()
}

/** What comes long before the drain's own time is over, or null. */
async function soon<T> (promise: Promise<T>): Promise<T | null> {
  return await Promise.race([promise, wait(longMs / 6, null, { ref: false })])
}

for (const host of hosts.filter(({ drains }) => drains)) {
  t.test(`${host.name}: as many bytes as are allowed`, async (t) => {
    const scene = await stage(t, host, { maxBytes: 16 })
    const { send } = await leaveBeforeUsage(scene, { stallAt: beforeUsage + 32 })
    send()
    t.ok(await soon(scene.upstream.aborts.next()), 'the upstream is cancelled')
    t.strictSame(await soon(scene.settled.next()), { usage: null, usageMissing: 'client_abort' })
  })

  t.test(`${host.name}: no further than the last usage`, async (t) => {
    const scene = await stage(t, host, {})
    const { send } = await leaveBeforeUsage(scene, { stallAt: reply.length })
    send()
    t.ok(await soon(scene.upstream.aborts.next()), 'an upstream that does not end is cancelled')
    t.strictSame(await soon(scene.settled.next()), { usage: usageOf[fixture]?.leaves, usageMissing: null })
  })

  t.test(`${host.name}: not at all where all was told before`, async (t) => {
    const scene = await stage(t, host, {})
    scene.upstream.queue({ fixture, stallAt: reply.length })
    await leaveAfter(scene, reply.length)
    t.ok(await soon(scene.upstream.aborts.next()), 'an upstream that does not end is cancelled')
    t.strictSame(await soon(scene.settled.next()), { usage: usageOf[fixture]?.leaves, usageMissing: null })
  })

  t.test(`${host.name}: also where its caller had stopped reading`, async (t) => {
    const scene = await stage(t, host, { maxBytes: 64 * mebi })
    await leaveUnread(scene)
    t.strictSame(await soon(scene.settled.next()), { usage: usageOf[fixture]?.leaves, usageMissing: null })
  })

  t.test(`${host.name}: as many at once as there are places, which are given back`, async (t) => {
    const scene = await stage(t, host, { maxConcurrent: 1 })
    for (const round of [1, 2]) {
      const first = await leaveBeforeUsage(scene)
      await leaveBeforeUsage(scene)
      t.ok(await soon(scene.upstream.aborts.next()), `round ${round}: the second has no place`)
      t.strictSame(await soon(scene.settled.next()), { usage: null, usageMissing: 'client_abort' })
      first.send()
      t.strictSame(
        await soon(scene.settled.next()), { usage: usageOf[fixture]?.leaves, usageMissing: null },
        `round ${round}: the first is read to its end`
      )
    }
  })

  t.test(`${host.name}: an app that closes waits for it`, async (t) => {
    const scene = await stage(t, host, {})
    const { send } = await leaveBeforeUsage(scene)
    const closed = scene.app.close().then(() => scene.settled.size)
    await wait(50)
    send()
    t.equal(await closed, 1, 'settled before the app was closed')
    t.strictSame(await scene.settled.next(), { usage: usageOf[fixture]?.leaves, usageMissing: null })
  })
}
