/** A host that speaks HTTP/2: a stream that its upstream broke off must not end as a whole one does. */
import { connect, type ClientHttp2Session, type ClientHttp2Stream, type OutgoingHttpHeaders } from 'node:http2'
import { Readable } from 'node:stream'
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import llmGateway, { proxyOptions } from '../plugins/index.js'
import { everyProtocol, gatewayOptions, secret, watchSettled } from './helpers/gateway.js'
import { replyFixture, startUpstream, type Script, type Upstream } from './helpers/upstream.js'

const fixture = 'chat_completions.include_usage.sse'
const body = JSON.stringify({
  model: 'm', stream: true, stream_options: { include_usage: true }, messages: [{ role: 'user', content: 'hi' }],
})
const headers = {
  ':method': 'POST', ':path': '/v1/chat/completions', authorization: `Bearer ${secret}`, 'content-type': 'application/json',
}

type Mount = (app: FastifyInstance, url: string) => Promise<void>

const mounts: Readonly<Record<string, Mount>> = {
  'routes of this package': async (app, url) => {
    await app.register(llmGateway, gatewayOptions(url))
  },
  'a mount that spreads proxyOptions': async (app, url) => {
    await app.register(llmGateway, withoutRoutes(url))
    await app.register(httpProxy, { upstream: url, prefix: '/v1', rewritePrefix: '/v1', ...proxyOptions() })
  },
  'a mount that nobody adapted': async (app, url) => {
    await app.register(llmGateway, withoutRoutes(url))
    await app.register(httpProxy, { upstream: url, prefix: '/v1', rewritePrefix: '/v1' })
  },
}

function withoutRoutes (url: string): ReturnType<typeof gatewayOptions> {
  const { upstreams: _, ...own } = gatewayOptions(url, { groups: { all: { protocols: everyProtocol } }, routes: false })
  return own
}

interface Mounted {
  readonly upstream: Upstream
  readonly settled: ReturnType<typeof watchSettled>
  readonly client: ClientHttp2Session
}

async function startMounted (t: Test, mount: Mount): Promise<Mounted> {
  const upstream = await startUpstream(t)
  const app: FastifyInstance = Object(Fastify({ http2: true }))
  await mount(app, upstream.url)
  const settled = watchSettled(app)
  const client = connect(await app.listen({ port: 0, host: '127.0.0.1' }))
  t.teardown(async () => {
    client.destroy()
    await app.close()
  })
  return { upstream, settled, client }
}

/** What the caller got, and whether its stream ended as a whole one does. */
async function ask (
  client: ClientHttp2Session, asked: OutgoingHttpHeaders = headers, begun = (): void => {}
): Promise<{ text: string, failed: boolean }> {
  return await ended(client.request(asked).on('response', begun).end(asked === headers ? body : ''))
}

async function ended (stream: ClientHttp2Stream): Promise<{ text: string, failed: boolean }> {
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  return await new Promise((resolve) => {
    let failed = false
    stream.on('error', () => { failed = true })
    stream.on('close', () => resolve({ text: Buffer.concat(chunks).toString(), failed }))
  })
}

for (const [name, mount] of Object.entries(mounts)) {
  t.test(name, async (t) => {
    const { upstream, settled, client } = await startMounted(t, mount)
    upstream.queue({ fixture, split: 'events' })
    t.match(await ask(client), { text: replyFixture(fixture).toString(), failed: false })
    t.match(await settled.next(), { outcome: 'ok' })

    const cuts: Record<string, Script> = {
      'by its upstream': { fixture, split: [400], cutAt: 1_000 },
      cleanly: { body: replyFixture(fixture).subarray(0, 1_000), headers: { 'content-type': 'text/event-stream' }, split: [400] },
    }
    for (const [how, script] of Object.entries(cuts)) {
      let go = (): void => {}
      const begun = new Promise<void>((resolve) => { go = resolve })
      upstream.queue({ ...script, before: async (write) => { if (write === 2) await begun } })
      const asked = ask(client)
      setTimeout(go, 50)
      const { text, failed } = await asked
      t.equal(failed, true, `cut within an event ${how}`)
      t.equal(replyFixture(fixture).toString().startsWith(text) && text.length > 0, true, 'what came before was passed on')
      t.match(await settled.next(), { outcome: 'truncated', abortedBy: 'upstream' })
    }
    t.equal(settled.size, 0)
  })

  t.test(`${name}: a reply without usage that breaks off is no whole one, either`, async (t) => {
    const { upstream, settled, client } = await startMounted(t, mount)
    const list = { ':path': '/v1/models', authorization: `Bearer ${secret}` }
    // Elsewhere an error that breaks off becomes one of ours.
    const replies = [[200, list], [429, headers]] as const
    for (const [status, asked] of name === 'a mount that nobody adapted' ? replies : replies.slice(0, 1)) {
      let go = (): void => {}
      const begun = new Promise<void>((resolve) => { go = resolve })
      const cut = { body: '{"data":[{"id":"model"}]}', split: [10], cutAt: 20 }
      upstream.queue({ ...cut, status, before: async (write) => { if (write === 2) await begun } })
      t.equal((await ask(client, asked, go)).failed, true, String(status))
      t.match(await settled.next(), { outcome: 'truncated', abortedBy: 'upstream' })
    }
  })
}

/** Only what the upstream has sent before it broke off, and only then. */
async function * held (body: Readable): AsyncGenerator<unknown> {
  const gone = new Promise((resolve) => body.once('close', resolve))
  for await (const chunk of body) {
    await gone
    yield chunk
  }
}

function withHolder (mount: Mount): Mount {
  return async (app, url) => {
    await mount(app, url)
    app.addHook('onSend', async (_request, _reply, body) => body instanceof Readable ? Readable.from(held(body)) : body)
  }
}

const holders: Readonly<Record<string, Mount>> = {
  'the option of a cost header': async (app, url) => {
    await app.register(llmGateway, gatewayOptions(url, { prices: { models: { m: { input: 1 } } }, costs: { header: true } }))
  },
  ...Object.fromEntries(Object.entries(mounts).map(([name, mount]) => [`a hook of the host's at ${name}`, withHolder(mount)])),
}

for (const [name, mount] of Object.entries(holders)) {
  t.test(`a reply that breaks off while it is held back by ${name} is no whole one`, async (t) => {
    const { upstream, settled, client } = await startMounted(t, mount)
    upstream.queue({ body: '{"id":"chatcmpl-1"}', headers: { 'content-type': 'application/json' }, split: [10], cutAt: 15 })
    const stream = client.request(headers).end(JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }))
    t.equal((await ended(stream)).failed, true)
    t.match(await settled.next(), { outcome: 'truncated', abortedBy: 'upstream' })
  })
}

t.test('a reply to HEAD is over where its upstream still sends what GET would get', async (t) => {
  const { upstream, settled, client } = await startMounted(t, async (app, url) => { await app.register(llmGateway, gatewayOptions(url)) })
  upstream.queue({ headers: { 'content-type': 'application/json' }, body: '{"data":[]}', length: true, stallAt: 5 })
  const stream = client.request({ ':method': 'HEAD', ':path': '/v1/models', authorization: `Bearer ${secret}` }).resume()
  const head = await new Promise((resolve) => stream.on('response', resolve))
  t.match(head, { ':status': 200, 'content-length': '11', 'content-type': 'application/json' })
  t.match(await settled.next(), { status: 200, outcome: 'ok', abortedBy: null })
})
