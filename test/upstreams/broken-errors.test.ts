/** Errors of members that do not come to their end: their head has said what they are. */
import t, { type Test } from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import type { UpstreamStatus } from '../../plugins/core/upstream/upstream-status.js'
import type { PoolOptions } from '../../plugins/upstreams/options.js'
import { call, listen, read } from '../helpers/gateway.js'
import { inOrder, seenBy, startPool, type PoolGateway } from './pool-gateway.js'

const chat = JSON.stringify({ model: 'gpt-5', messages: [{ role: 'user', content: 'Hi' }] })
const body = JSON.stringify({ error: { message: 'there is too much to do' } })

interface Asker extends PoolGateway {
  readonly ask: (headers?: Record<string, string>) => Promise<{ readonly status: number | undefined, readonly text: string }>
  readonly first: () => UpstreamStatus | undefined
}

async function startAsker (
  t: Test, pool: Omit<PoolOptions, 'members'> = {}, upstreams: Parameters<typeof startPool>[1] = {}
): Promise<Asker> {
  const gateway = await startPool(t, { rules: inOrder, pool, ...upstreams })
  const url = await listen(gateway.app)
  return {
    ...gateway,
    ask: async (headers = {}) => {
      const reply = await call(`${url}/v1/chat/completions`, { body: chat, headers }).reply
      return { status: reply.statusCode, text: (await read(reply)).bytes.toString() }
    },
    first: () => gatewayOf(gateway.app).upstreamsStatus().upstreams[0],
  }
}

t.test('a limit or an overload that breaks off after its head is another member\'s request', async (t) => {
  for (const [status, result] of [[429, 'rate_limited'], [503, 'overloaded'], [529, 'overloaded']] as const) {
    for (const cutAt of [0, 20]) {
      const gateway = await startAsker(t)
      gateway.members[0]?.queue({ status, headers: { 'retry-after': '20' }, body, cutAt })
      t.equal((await gateway.ask()).status, 200)
      t.match(await gateway.settled.next(), { outcome: 'ok', routing: { attempts: [{ result, status }, { result: 'ok' }] } })
      t.strictSame(seenBy(gateway), [1, 1])
    }
  }
})

t.test('the account of a limit that broke off is left alone for as long as its head says', async (t) => {
  const gateway = await startAsker(t)
  gateway.members[0]?.queue({ status: 429, headers: { 'retry-after': '20' }, body, cutAt: 20 })
  for (let i = 0; i < 2; i++) t.equal((await gateway.ask()).status, 200)
  t.strictSame(seenBy(gateway), [1, 2])
  const [out] = gateway.first()?.models ?? []
  t.match(out, { model: 'gpt-5', reason: 'limit' })
  t.ok(Number(out?.returnsInMs) > 15_000, `${out?.returnsInMs} ms`)
})

t.test('an error that broke off where no member helps is one native error, and no whole reply is given up for it', async (t) => {
  const broken = { status: 429, headers: { 'retry-after': '1' }, body, cutAt: 20 }
  const gateway = await startAsker(t)
  for (const member of gateway.members) member.queue(broken)
  const { status, text } = await gateway.ask()
  t.match([status, JSON.parse(text)], [502, { error: { code: 'upstream_reset' } }])
  t.match(await gateway.settled.next(), { outcome: 'upstream_error', upstreamReply: { status: 429 }, holds: 0 })
  for (const whole of [{ status: 429, headers: { 'retry-after': '9' }, body }, { status: 401, body }]) {
    const other = await startAsker(t)
    other.members[0]?.queue(broken)
    other.members[1]?.queue(whole)
    t.strictSame(await other.ask(), { status: whole.status, text: body })
  }
})

t.test('a refusal that broke off blames no credential: whom it concerns would stand in what is missing', async (t) => {
  const gateway = await startAsker(t)
  for (const status of [400, 401, 403]) {
    gateway.members[0]?.queue({ status, body: { error: { code: 'mismatched_organization' } }, cutAt: 10 })
    t.equal((await gateway.ask({ 'openai-organization': 'org-other' })).status, 502)
    t.match((await gateway.settled.next()).routing.attempts, [{ result: 'reset', status }])
  }
  const { state, models } = Object(gateway.first())
  t.strictSame({ state, models }, { state: 'up', models: [] })
  t.equal((await gateway.ask()).status, 200)
  t.strictSame(seenBy(gateway), [4, 0])
})

t.test('any other failure that broke off is a broken connection', async (t) => {
  const gateway = await startAsker(t, { retryOn: ['reset'] })
  for (const status of [500, 502, 504]) {
    gateway.members[0]?.queue({ status, body, cutAt: 20 })
    t.equal((await gateway.ask()).status, 200)
    t.match((await gateway.settled.next()).routing.attempts, [{ result: 'reset', status }, { result: 'ok' }])
  }
})

t.test('a refusal that broke off has no secret renewed, and neither has one of what its caller named', async (t) => {
  let made = 0
  const gateway = await startAsker(t, {}, { members: 1, upstreams: [{ credential: async () => { made += 1; return `token-${made}` } }] })
  gateway.members[0]?.queue({ status: 401, body, cutAt: 10 }, { status: 401, body: { error: { code: 'mismatched_organization' } } })
  t.equal((await gateway.ask()).status, 502)
  t.equal((await gateway.ask({ 'openai-organization': 'org-other' })).status, 401)
  t.equal(made, 1)
})

t.test('an overload that cannot be read to its end is one all the same', async (t) => {
  const gateway = await startAsker(t)
  gateway.members[0]?.queue({ stallAt: 'headers' })
  const asked = gateway.ask()
  const { raw } = await gateway.members[0]?.requests.next() ?? {}
  raw?.res.socket?.write('HTTP/1.1 503 Busy\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nno length\r\n')
  t.equal((await asked).status, 200)
  t.match((await gateway.settled.next()).routing.attempts, [{ result: 'overloaded', status: 503 }, { result: 'ok' }])
})

t.test('an error that stalls after its head is passed on once it was waited for, and counts as what its head says', async (t) => {
  const cases = [[429, 'rate_limited'], [503, 'overloaded'], [500, 'server_error'], [400, 'client_error']] as const
  const waits: number[] = []
  for (const [status, result] of cases) {
    const gateway = await startAsker(t)
    gateway.members[0]?.queue({ status, headers: { 'retry-after': '20' }, body, stallAt: 20 })
    const since = performance.now()
    const told = await gateway.ask()
    waits.push(performance.now() - since)
    t.match([told.status, JSON.parse(told.text)], [status, { error: { message: 'The model provider answered with an error.' } }])
    t.match((await gateway.settled.next()).routing.attempts, [{ upstream: 'm0', result, status }])
    t.match(gateway.first(), { state: 'up', active: 0 })
    const metrics = (await gateway.app.inject('/metrics')).body
    t.match(metrics, new RegExp(`upstream_attempts_total\\{upstream="m0",result="${result}"\\} 1`))
  }
  t.ok(Math.min(...waits) < 1_900, `waited for once: ${waits.join(' ms, ')} ms`)
})

t.test('the account of a limit that stalls is left alone for as long as its head says', async (t) => {
  const gateway = await startAsker(t)
  gateway.members[0]?.queue({ status: 429, headers: { 'retry-after': '20' }, body, stallAt: 20 })
  t.equal((await gateway.ask()).status, 429)
  const [out] = gateway.first()?.models ?? []
  t.match(out, { model: 'gpt-5', reason: 'limit' })
  t.ok(Number(out?.returnsInMs) > 15_000, `${out?.returnsInMs} ms`)
  t.equal((await gateway.ask()).status, 200)
  t.strictSame(seenBy(gateway), [1, 1])
})

t.test('an overload that is passed on and breaks off then is one failure, and not two', async (t) => {
  const gateway = await startAsker(t)
  const long = Buffer.alloc(300_000, 'x')
  for (let i = 0; i < 4; i++) {
    gateway.members[0]?.queue({ status: 503, body: long, split: [280_000], cutAt: 290_000 })
    await gateway.ask()
    t.match((await gateway.settled.next()).routing.attempts, [{ upstream: 'm0', result: 'overloaded', status: 503 }])
  }
  t.match(gateway.first(), { state: 'up' })
  gateway.members[0]?.queue({ status: 503, body: long })
  await gateway.ask()
  t.match(gateway.first(), { state: 'out', reason: 'failures' })
})

t.test('an error of its caller\'s that is passed on and breaks off is a broken connection', async (t) => {
  const gateway = await startAsker(t)
  gateway.members[0]?.queue({ status: 422, body, cutAt: 20, split: [10] })
  t.equal((await gateway.ask()).status, 502)
  t.match((await gateway.settled.next()).routing.attempts, [{ upstream: 'm0', result: 'reset', status: 422 }])
})
