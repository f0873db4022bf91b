import { gzipSync } from 'node:zlib'
import Fastify from 'fastify'
import httpProxy from '@fastify/http-proxy'
import t from 'tap'
import { modelCallOf, type ModelCall } from '../../plugins/core/call/model-call.js'
import { auth, limits, paths, proxyOptions, upstreams, usage, forward } from '../../plugins/index.js'
import type { LimitsOptions } from '../../plugins/limits/index.js'
import { ticketOf, type Ticket } from '../../plugins/limits/ticket.js'
import { memoryBalances, memoryLedger, type Balances, type Ledger } from '../../plugins/state/index.js'
import { call, everyProtocol, listen, read, secret, startGateway, watchSettled } from '../helpers/gateway.js'
import { Signal, startUpstream, usageOf } from '../helpers/upstream.js'
import { messages, setup } from './setup.js'

const group = { balance: 1_000_000, concurrency: 10 }
const noDrain = { maxMs: 0 }
const body = { model: 'm', messages, max_tokens: 500 }

t.test('an error of the upstream costs nothing', async (t) => {
  const { chat, upstream, quiet, records } = await setup(t, { group })
  upstream.queue({ status: 500, body: { error: { message: 'no' } } })
  t.equal((await chat()).status, 500)
  t.match(await quiet(), { spent: 0 })
  t.match(await records(), [{ outcome: 'upstream_error', charged: 0 }])
})

t.test('an upstream that is not there costs nothing and leaves no record', async (t) => {
  const { chat, upstream, quiet, records } = await setup(t, { group })
  await upstream.close()
  t.equal((await chat()).status, 502)
  t.match(await quiet(), { spent: 0 })
  t.same(await records(), [])
})

t.test('a reply that a hook of the host fails with is paid for, whatever status the hook gives it', async (t) => {
  for (const statusCode of [500, 502, 504]) {
    const upstream = await startUpstream(t)
    const [balances, ledger] = [memoryBalances(), memoryLedger()]
    const { app, settled } = await startGateway(t, upstream.url, {
      groups: { all: { protocols: everyProtocol, limits: group } }, limits: { balances, ledger },
    })
    app.addHook('onSend', async () => { throw Object.assign(new Error('a service of mine is away'), { statusCode }) })
    const { reply } = call(`${await listen(app)}/v1/chat/completions`, { body: JSON.stringify(body) })
    t.equal((await reply).statusCode, statusCode)
    await settled.next()
    const records: unknown[] = []
    for await (const record of ledger.read()) records.push(record)
    t.match(records, [{ charged: 170 }], String(statusCode))
    t.match(balances.read('all'), { spent: 170, held: 0 })
  }
})

t.test('a request whose reply cannot be read was sent, and is paid for', async (t) => {
  const { chat, upstream, quiet, records } = await setup(t, { group })
  upstream.respond = ({ raw }) => {
    // Two lengths, of which no reader may believe either (RFC 9112 6.3).
    raw.res.socket?.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n')
    return { stallAt: 'headers' }
  }
  t.match(await chat(), { status: 502, json: { error: { code: 'upstream_invalid' } } })
  const { spent } = await quiet()
  t.ok(spent > 0)
  t.match(await records(), [{ outcome: 'upstream_error', charged: spent }])
})

t.test('a caller that leaves before the reply pays for its request', async (t) => {
  const { url, upstream, quiet, records } = await setup(t, { group, drain: noDrain })
  upstream.queue({ stallAt: 'headers' })
  const { request } = call(`${url}/v1/chat/completions`, { body: JSON.stringify(body) })
  const arrived = await upstream.requests.next()
  request.destroy()
  const charged = Math.ceil(arrived.body.length / 4)
  t.match(await quiet(), { spent: charged })
  t.match(await records(), [{ outcome: 'client_abort', charged }])
})

t.test('a caller that leaves in the middle pays for what it saw, and not for all that was held', async (t) => {
  const { url, upstream, quiet, records } = await setup(t, { group, drain: noDrain })
  upstream.queue({ fixture: 'messages.sse', stallAt: 900 })
  const headers = { authorization: '', 'x-api-key': secret, 'anthropic-version': '2023-06-01' }
  await leaveAfter(900, `${url}/v1/messages`, { headers, body: JSON.stringify({ ...body, stream: true }) })
  const { spent } = await quiet()
  const whole = Object.values(usageOf['messages.sse']?.leaves ?? {}).reduce((sum, tokens) => sum + tokens, 0)
  t.ok(spent > 0 && spent < whole, `${spent} of ${whole}`)
  t.match(await records(), [{ outcome: 'client_abort', charged: spent }])
})

t.test('a caller that leaves a stream of messages pays for its input as told, and for the words that came', async (t) => {
  const { url, upstream, quiet } = await setup(t, { group, drain: noDrain })
  const event = (type: string, data: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
  const start = event('message_start', { message: { id: 'm', model: 'm', usage: { input_tokens: 200, output_tokens: 1 } } })
  const word = event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: ' some words' } })
  const bytes = Buffer.from(start + word.repeat(40))
  upstream.queue({ body: bytes, headers: { 'content-type': 'text/event-stream' }, stallAt: bytes.length })
  const headers = { authorization: '', 'x-api-key': secret, 'anthropic-version': '2023-06-01' }
  const asked = JSON.stringify({ ...body, max_tokens: 1_000, stream: true })
  await leaveAfter(bytes.length, `${url}/v1/messages`, { headers, body: asked })
  const { spent } = await quiet()
  // The provider counts two or three tokens in each.
  t.ok(spent >= 200 + 40 * 2 && spent <= 200 + 40 * 4, `${spent} tokens`)
})

t.test('a chat that breaks off, or whose caller leaves, after its usage costs what that says', async (t) => {
  const { url, upstream, quiet, records } = await setup(t, { group, drain: noDrain })
  const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`
  const bytes = Buffer.from(
    event({ choices: [{ index: 0, delta: { content: 'a word' } }] }) +
    event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }) +
    event({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 } })
  )
  const asked = JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true } })
  for (const ending of [{ stallAt: bytes.length }, { cutAt: bytes.length }]) {
    upstream.queue({ body: bytes, headers: { 'content-type': 'text/event-stream' }, ...ending })
    await leaveAfter(bytes.length, `${url}/v1/chat/completions`, { body: asked })
    await quiet()
  }
  t.match(await records(), [{ input: 3, output: 1, charged: 4 }, { input: 3, output: 1, charged: 4 }])
})

t.test('a caller that has its reply packed pays for what is in it, and not for how small it is', async (t) => {
  const { url, upstream, quiet } = await setup(t, { group, drain: noDrain })
  const event = 'data: {"choices":[{"index":0,"delta":{"content":"word"}}]}\n\n'
  const bytes = gzipSync(event.repeat(400)).subarray(0, -20)
  upstream.queue({ body: bytes, stallAt: bytes.length, headers: { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' } })
  const asked = JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true } })
  await leaveAfter(bytes.length, `${url}/v1/chat/completions`, { headers: { 'accept-encoding': 'gzip' }, body: asked })
  const { spent } = await quiet()
  const words = spent - Math.ceil(asked.length / 4)
  t.ok(words > 100, `${words} tokens for 400 words in ${bytes.length} bytes`)
})

t.test('a response that goes on in the background costs what it may use, and no other does', async (t) => {
  for (const [background, stream] of [[true, false], [true, true], [false, false]] as const) {
    const { url, upstream, quiet } = await setup(t, { group, drain: noDrain })
    const queued = { id: 'r', object: 'response', status: 'queued', model: 'm', usage: null }
    upstream.queue(stream ? { fixture: 'responses.sse', stallAt: 200 } : { body: queued })
    const asked = JSON.stringify({ model: 'm', input: 'hi', max_output_tokens: 500, background, stream })
    const { request, reply } = call(`${url}/v1/responses`, { body: asked })
    if (stream) {
      (await reply).once('data', () => request.destroy())
    } else await read(await reply)
    const input = Math.ceil(asked.length / 4)
    t.match(await quiet(), { spent: background ? input + 500 : input + Math.ceil(JSON.stringify(queued).length / 4) })
  }
})

t.test('a caller that leaves before its body is read pays nothing', async (t) => {
  const { url, upstream, quiet, records } = await setup(t, { group })
  const { request } = call(`${url}/v1/chat/completions`, { headers: { 'content-length': '1000' }, body: '{' })
  await new Promise((resolve) => setTimeout(resolve, 50))
  request.destroy()
  t.match(await quiet(), { spent: 0 })
  t.equal(upstream.seen.length, 0)
  t.same(await records(), [])
})

/** Makes a call, and leaves it once so many bytes of its reply have come. */
async function leaveAfter (bytes: number, ...asked: Parameters<typeof call>): Promise<void> {
  const { reply, request } = call(...asked)
  let seen = 0
  for await (const chunk of await reply) {
    seen += chunk.length
    if (seen >= bytes) break
  }
  request.destroy()
}

/** Stands still wherever it is called, until the test goes on. */
function gate (): { wait: () => Promise<void>, reached: Promise<void>, open: () => void } {
  let open = (): void => {}
  let reach = (): void => {}
  const opened = new Promise<void>((resolve) => { open = resolve })
  const reached = new Promise<void>((resolve) => { reach = resolve })
  return { wait: async () => { reach(); await opened }, reached, open }
}

t.test('a caller that leaves while its limits are asked takes nothing, and nothing is sent for it', async (t) => {
  for (const at of ['authorize', 'enter', 'hold', 'both'] as const) {
    const memory = memoryBalances()
    const { wait, reached, open } = gate()
    const asked: LimitsOptions = {
      ...at === 'authorize' && { authorize: wait },
      // As over a connection, where steps are done in the order in which they were asked.
      balances: {
        ...memory,
        hold: async (ask) => {
          const decision = memory.hold(ask)
          if (ask.requests === (at === 'hold' ? 0 : 1) && at !== 'authorize') await wait()
          return decision
        },
      },
    }
    const { app, url, upstream, quiet, records } = await setup(t, { group, limits: asked })
    const settled = watchSettled(app)
    // Of a body that does not tell its length, a place is taken before it is read.
    const headers: Record<string, string> = at === 'both' ? {} : { 'transfer-encoding': 'chunked' }
    const { request } = call(`${url}/v1/chat/completions`, { headers, body: JSON.stringify(body) })
    await reached
    request.destroy()
    t.match(await settled.next(), { outcome: 'client_abort' })
    open()
    t.match(await quiet(), { spent: 0 }, at)
    // Would come first, if it came.
    const { reply } = call(`${url}/v1/chat/completions`, { body: JSON.stringify({ ...body, model: 'next' }) })
    await read(await reply)
    t.same(upstream.seen.map(({ json }) => json['model']), ['next'], at)
    t.match(await quiet(), { held: 0, active: 0 })
    t.equal((await records()).length, 1)
    await app.close()
  }
})

t.test('a caller that leaves while a hook of the host waits has nothing sent for it', async (t) => {
  const { wait, reached, open } = gate()
  let waits = true
  const upstream = await startUpstream(t)
  const balances = memoryBalances()
  const { app, settled } = await startGateway(t, upstream.url, {
    groups: { all: { protocols: everyProtocol, limits: group } }, limits: { balances },
  })
  app.addHook('preHandler', async () => { if (waits) await wait() })
  const url = `${await listen(app)}/v1/chat/completions`
  const { request } = call(url, { body: JSON.stringify(body) })
  await reached
  request.destroy()
  t.match(await settled.next(), { outcome: 'client_abort', usage: { tokens: null, missing: null } })
  t.match(balances.read('all'), { spent: 0, held: 0, active: 0 }, 'it costs nothing')
  waits = false
  open()
  const { reply } = call(url, { body: JSON.stringify({ ...body, model: 'next' }) })
  await read(await reply)
  t.same(upstream.seen.map(({ json }) => json['model']), ['next'])
  t.match(await settled.next(), { outcome: 'ok' })
  t.match(balances.read('all'), { held: 0, active: 0 })
})

t.test('a caller that leaves between the asking for its key and for its limits takes no place', async (t) => {
  const { wait, reached, open } = gate()
  const upstream = await startUpstream(t)
  const balances = memoryBalances()
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(auth, { groups: { all: { protocols: everyProtocol, limits: group } }, keys: [{ id: 'caller', group: 'all', secret }] })
  app.addHook('onRequest', wait)
  await app.register(limits, { balances })
  const passed = new Signal<unknown>()
  app.addHook('onRequest', async (request) => { passed.push(request) })
  await app.register(upstreams, { upstreams: { main: { url: upstream.url } } })
  await app.register(forward)
  const settled = watchSettled(app)
  // Of a length that is not told: others have no place before their body is there.
  const { request } = call(`${await listen(app)}/v1/chat/completions`, {
    headers: { 'transfer-encoding': 'chunked' }, body: JSON.stringify(body),
  })
  await reached
  request.destroy()
  t.match(await settled.next(), { outcome: 'client_abort' })
  open()
  await passed.next()
  t.match(balances.read('all'), { active: 0, held: 0 })
})

t.test('a caller that leaves while its request waits for a connection has its place free at once', async (t) => {
  const upstream = await startUpstream(t)
  const balances = memoryBalances()
  const { app, settled } = await startGateway(t, upstream.url, {
    groups: { all: { protocols: everyProtocol, limits: group } }, limits: { balances }, forward: { connections: 1, drain: noDrain },
  })
  let answer = (): void => {}
  const answered = new Promise<void>((resolve) => { answer = resolve })
  upstream.queue({ body: {}, before: async () => await answered })
  const url = `${await listen(app)}/v1/chat/completions`
  const first = call(url, { body: JSON.stringify(body) })
  await upstream.requests.next()
  const { held } = await balances.read('all')
  const second = call(url, { body: JSON.stringify({ ...body, model: 'left' }) })
  while ((await balances.read('all')).held === held) await new Promise(setImmediate)
  second.request.destroy()
  t.match(await settled.next(), { outcome: 'client_abort', model: 'left', usage: { missing: null } })
  t.match(balances.read('all'), { active: 1, held, spent: 0 })
  answer()
  await read(await first.reply)
  t.match(await settled.next(), { outcome: 'ok' })
  const { reply } = call(url, { body: JSON.stringify({ ...body, model: 'next' }) })
  await read(await reply)
  t.match(await settled.next(), { outcome: 'ok', model: 'next' })
  t.same(upstream.seen.map(({ json }) => json['model']), ['m', 'next'], 'and is never sent')
  t.match(balances.read('all'), { active: 0, held: 0 })
})

t.test('a record that cannot be kept holds nothing back', async (t) => {
  for (const append of [async () => { throw new Error('full') }, () => { throw new Error('not even a promise') }]) {
    const { chat, quiet } = await setup(t, { group, limits: { ledger: { ...memoryLedger(), append } } })
    t.equal((await chat()).status, 200)
    t.match(await quiet(), { held: 0, active: 0 })
  }
})

t.test('a place is free while the record is still written', async (t) => {
  for (const whose of ['group', 'key'] as const) {
    let keep = (): void => {}
    const ledger: Ledger = { ...memoryLedger(), append: async () => await new Promise<void>((resolve) => { keep = resolve }) }
    const balance = 100_000
    const { chat, account, quiet } = await setup(t, { group: { balance }, [whose]: { concurrency: 1, balance }, limits: { ledger } })
    t.equal((await chat()).status, 200)
    for (const key of [undefined, 'caller']) t.match(await account(key), { active: 0, spent: 0 })
    t.ok((await account()).held > 0, 'its tokens are not')
    keep()
    await quiet()
  }
})

t.test('a request whose record waits for longer than a hold lives keeps what it holds, also when its app has ended', async (t) => {
  let keep = (): void => {}
  const ledger: Ledger = { ...memoryLedger(), append: async () => await new Promise<void>((resolve) => { keep = resolve }) }
  let now = 0
  const renewed: string[] = []
  const store = memoryBalances({ now: () => now, holdTtlMs: 60 })
  const renew: Balances['renew'] = (group, ids) => {
    renewed.push(...ids)
    return store.renew(group, ids)
  }
  const { app, chat, account, quiet } = await setup(t, { group: { balance: 100_000 }, limits: { ledger, balances: { ...store, renew } } })
  t.equal((await chat()).status, 200)
  const { held } = await account()
  for (const later of [50, 100, 150]) {
    // As at a reload.
    if (later === 100) await app.close()
    const before = renewed.length
    while (renewed.length === before) await new Promise((resolve) => setTimeout(resolve, 5))
    now = later
  }
  t.match(await account(), { held, spent: 0 })
  const ended = t.capture(globalThis, 'clearInterval', clearInterval)
  keep()
  t.match(await quiet(), { spent: 170 })
  // The timer sees that nothing is left.
  while (ended().length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
})

t.test('a claim whose record waits for the disk does not keep its request in memory', async (t) => {
  let keep = (): void => {}
  const ledger: Ledger = { ...memoryLedger(), append: async () => await new Promise<void>((resolve) => { keep = resolve }) }
  const tickets: Array<Ticket | undefined> = []
  const calls: Array<ModelCall | null> = []
  const balances = memoryBalances()
  const hold: Balances['hold'] = (ask) => {
    for (const llm of calls) tickets.push(llm === null ? undefined : ticketOf(llm))
    return balances.hold(ask)
  }
  const authorize: LimitsOptions['authorize'] = (request) => { calls.push(modelCallOf(request)) }
  const { chat, quiet } = await setup(t, { group: { balance: 100_000 }, limits: { ledger, authorize, balances: { ...balances, hold } } })
  t.equal((await chat()).status, 200)
  while (calls[0]?.settled !== true) await new Promise((resolve) => setTimeout(resolve, 5))
  t.strictSame([tickets[0]?.llm, calls[0].ticket], [null, null])
  keep()
  await quiet()
})

t.test('limits that would be asked before anybody knows who calls fail the start', async (t) => {
  for (const later of [false, true]) {
    const app = Fastify()
    t.teardown(() => app.close())
    app.register(limits, { authorize: () => ({ code: 'access_denied' }) })
    if (later) app.register(auth, { groups: {} })
    await t.rejects(async () => await app.ready(), {
      code: 'FST_ERR_PLUGIN_DEPENDENCY_NOT_REGISTERED', message: /llm-gateway-auth.*llm-gateway-limits/,
    })
  }
})

t.test('a request that passes the router twice is counted once', async (t) => {
  const upstream = await startUpstream(t)
  const balances = memoryBalances()
  let asked = 0
  for (const authorize of [undefined, () => { asked += 1 }]) {
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(auth, {
      groups: { all: { protocols: ['chat_completions'], limits: { requestsPerMinute: 100 } } },
      keys: [{ id: 'caller', group: 'all', secret }],
    })
    await app.register(limits, { balances, ...authorize && { authorize } })
    await app.register(paths)
    await app.register(usage)
    await app.register(upstreams, { upstreams: {} })
    await app.register(forward, { routes: false })
    await app.register(httpProxy, { upstream: upstream.url, ...proxyOptions() })
    const url = await listen(app)
    const { reply } = call(`${url}/v1/v1/chat/completions`, { body: JSON.stringify(body) })
    t.equal((await reply).statusCode, 200)
    await read(await reply)
  }
  t.match(await balances.read('all'), { requests: 2 })
  t.equal(asked, 1)
})
