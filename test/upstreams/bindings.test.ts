import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import type { Notes } from '../../plugins/core/upstream/upstream.js'
import { openState } from '../../plugins/state/index.js'
import { memoryNotes } from '../../plugins/core/upstream/memory-notes.js'
import { Bindings, namedBy } from '../../plugins/upstreams/bindings.js'
import { call, everyProtocol, listen, secret, startGateway } from '../helpers/gateway.js'
import { Signal, startUpstream, type Upstream } from '../helpers/upstream.js'
import { ask, inOrder, overloaded, seenBy, startPool, type PoolGateway } from './pool-gateway.js'
import { requestTo } from './request.js'

const first = { model: 'gpt-5', input: 'Hi' }

/** A provider that has the responses that it made, and no other. */
function keepResponses (upstream: Upstream, name: string): void {
  let made = 0
  upstream.respond = ({ method, url, json }) => {
    const id = method === 'POST' ? json.previous_response_id : url.split('/')[3]?.split('?')[0]
    if (id !== undefined && !String(id).startsWith(`resp_${name}`)) {
      return { status: method === 'POST' ? 400 : 404, body: { error: { code: 'previous_response_not_found', message: name } } }
    }
    made += 1
    return {
      body: {
        id: method === 'POST' ? `resp_${name}${made}` : id,
        object: 'response',
        status: 'completed',
        model: 'gpt-5',
        output: [],
        usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
      },
    }
  }
}

/** A secret that nobody can have. */
async function away (): Promise<never> {
  throw new Error('away')
}

async function idOf (gateway: PoolGateway): Promise<string> {
  const { body, status } = await ask(gateway, first, {}, '/v1/responses')
  t.equal(status, 200)
  await gateway.settled.next()
  return String(JSON.parse(body).id)
}

async function get ({ app, settled }: PoolGateway, id: string, method: 'GET' | 'DELETE' = 'GET'): Promise<number> {
  const { statusCode } = await app.inject({ method, url: `/v1/responses/${id}`, headers: { authorization: `Bearer ${secret}` } })
  await settled.next()
  return statusCode
}

t.test('what an account keeps goes back to the member that made it, also in another process', async (t) => {
  const notes = memoryNotes()
  const wishes = { rules: inOrder, gateway: { notes } }
  const gateway = await startPool(t, wishes)
  gateway.members.forEach((member, i) => keepResponses(member, String(i)))
  gateway.members[0]?.queue(overloaded)
  const id = await idOf(gateway)
  t.match(id, /^resp_1/, 'the second member made it')
  const before = seenBy(gateway)
  const next = await ask(gateway, { ...first, previous_response_id: id }, {}, '/v1/responses')
  t.equal(next.status, 200)
  t.strictSame(seenBy(gateway), [before[0], Number(before[1]) + 1])
  t.equal(await get(gateway, id), 200)
  t.equal(await notes.read(`responses:${id}`), 'm1')

  const other = await startGateway(t, '', {
    ...gateway.options, groups: { all: { protocols: everyProtocol, upstream: 'pool' } }, keys: [{ id: 'caller', group: 'all', secret }],
  })
  const seen = seenBy(gateway)
  const elsewhere = await other.app.inject({ url: `/v1/responses/${id}`, headers: { authorization: `Bearer ${secret}` } })
  t.equal(elsewhere.statusCode, 200)
  t.strictSame(seenBy(gateway), [seen[0], Number(seen[1]) + 1], 'asked of its member at once')

  gateway.members[1]?.queue({ status: 429, headers: { 'retry-after': '30' }, body: { error: { message: 'its own' } } })
  const bound = await ask(gateway, { ...first, previous_response_id: id }, {}, '/v1/responses')
  t.match(bound, { status: 429, headers: { 'retry-after': '30' }, body: /its own/ }, 'it does not move, and fails natively')
})

t.test('an id that nobody knows is looked for with all, where it is all that is asked for', async (t) => {
  const gateway = await startPool(t, { members: 3, rules: inOrder })
  gateway.members.forEach((member, i) => keepResponses(member, String(i)))
  t.equal(await get(gateway, 'resp_2x'), 200)
  t.strictSame(seenBy(gateway), [1, 1, 1])
  t.equal(await get(gateway, 'resp_2x', 'DELETE'), 200)
  t.strictSame(seenBy(gateway), [1, 1, 2], 'and known from then on')
  t.equal(await get(gateway, 'resp_9'), 404)
  t.strictSame(seenBy(gateway), [2, 2, 3])
  const posted = await ask(gateway, { ...first, previous_response_id: 'resp_9' }, {}, '/v1/responses')
  t.match(posted, { status: 400, body: /previous_response_not_found/ })
  t.strictSame(seenBy(gateway), [3, 2, 3], 'a request that costs is not')
})

t.test('a caller that goes on at another process before the note of its reply is there finds its member all the same', async (t) => {
  const notes = memoryNotes()
  let note = (): unknown => null
  const late: Notes = { read: notes.read, write: (...named) => { note = () => notes.write(...named) } }
  const gateway = await startPool(t, { rules: inOrder, gateway: { notes: late } })
  gateway.members.forEach((member, i) => keepResponses(member, String(i)))
  gateway.members[0]?.queue(overloaded)
  const id = await idOf(gateway)
  let asked = 0
  const other = await startGateway(t, '', {
    ...gateway.options,
    notes: {
      read: (name) => {
        asked += 1
        if (asked === 2) note()
        return notes.read(name)
      },
      write: notes.write,
    },
    groups: { all: { protocols: everyProtocol, upstream: 'pool' } },
    keys: [{ id: 'caller', group: 'all', secret }],
  })
  const before = seenBy(gateway)
  t.equal((await ask(other, { ...first, previous_response_id: id }, {}, '/v1/responses')).status, 200)
  t.strictSame([asked, seenBy(gateway)], [2, [before[0], Number(before[1]) + 1]])
  const unknown = await other.app.inject({ url: '/v1/responses/resp_0x', headers: { authorization: `Bearer ${secret}` } })
  t.strictSame([unknown.statusCode, asked], [200, 3], 'whoever can ask all members does not wait')
})

t.test('what one member has not is not told as missing where another one could not say', async (t) => {
  const gateway = await startPool(t, { rules: inOrder, pool: { retryOn: [429, 503, 'reset'] } })
  gateway.members.forEach((member, i) => keepResponses(member, String(i)))
  const [owner] = gateway.members
  owner?.queue(overloaded)
  t.equal(await get(gateway, 'resp_0a'), 503)
  owner?.queue({ status: 429, headers: { 'retry-after': '0' }, body: {} })
  t.equal(await get(gateway, 'resp_0b', 'DELETE'), 429)
  owner?.queue({ cutAt: 'headers' })
  t.equal(await get(gateway, 'resp_0c'), 502)
  t.equal(await get(gateway, 'resp_0c'), 200, 'nobody is remembered for what nobody answered')
  t.equal(await get(gateway, 'resp_0d'), 200)
  owner?.queue(...Array.from({ length: 5 }, () => overloaded))
  for (let i = 0; i < 5; i += 1) await ask(gateway)
  while (gateway.settled.size > 0) await gateway.settled.next()
  const before = seenBy(gateway)
  t.equal(await get(gateway, 'resp_0e'), 502, 'it is out')
  t.strictSame(seenBy(gateway), [before[0], Number(before[1]) + 1])
  t.equal(await get(gateway, 'resp_0d'), 200, 'its member is known')

  const mute = await startPool(t, { rules: inOrder, upstreams: [{}, { credential: away }] })
  mute.members.forEach((member, i) => keepResponses(member, String(i)))
  t.equal(await get(mute, 'resp_1a'), 503, 'it has no secret')
})

t.test('what is bound to a member that has no secret is asked of no other one', async (t) => {
  const notes = memoryNotes()
  await notes.write('responses:resp_0', 'm0', 60_000)
  const gateway = await startPool(t, { rules: inOrder, upstreams: [{ credential: away }], gateway: { notes } })
  t.match(await ask(gateway, { ...first, previous_response_id: 'resp_0' }, {}, '/v1/responses'), {
    status: 503, body: /upstream_credential_unavailable/,
  })
  t.strictSame(seenBy(gateway), [0, 0])
})

t.test('a group that goes by models finds what was made for one of them', async (t) => {
  const members = [await startUpstream(t), await startUpstream(t)]
  members.forEach((member, i) => keepResponses(member, String(i)))
  const { app, settled } = await startGateway(t, '', {
    upstreams: Object.fromEntries(members.map(({ url }, i) => [`u${i}`, { url, credential: 'x' }])),
    groups: { all: { protocols: everyProtocol, routes: [{ models: ['glm-*'], upstream: 'u0' }, { models: ['gpt-*'], upstream: 'u1' }] } },
  })
  const headers = { authorization: `Bearer ${secret}` }
  const made = await app.inject({ method: 'POST', url: '/v1/responses', headers, payload: first })
  t.match(made.json(), { id: 'resp_11' })
  await settled.next()
  t.equal((await app.inject({ url: '/v1/responses/resp_11', headers })).statusCode, 200)
  t.strictSame(members.map(({ seen }) => seen.length), [0, 2])
})

t.test('a state engine that cannot answer keeps nobody from being asked', async (t) => {
  const broken: Notes = {
    read: async () => await Promise.reject(new Error('down')), write: async () => await Promise.reject(new Error('down')),
  }
  const gateway = await startPool(t, { rules: inOrder, gateway: { notes: broken } })
  gateway.members.forEach((member, i) => keepResponses(member, String(i)))
  const id = await idOf(gateway)
  t.equal(await get(gateway, id), 200, 'this process knows it')
  t.equal(await get(gateway, 'resp_1x'), 200)
  await t.rejects(startPool(t, { gateway: { notes: Object({ read: 5 }) } }), { code: 'LLM_GATEWAY_OPTION' })
})

t.test('notes are kept for their time, in each engine', async (t) => {
  let now = 1_000_000
  const folder = t.testdir()
  const lmdb = await openState({ engine: 'lmdb', path: folder }, () => now)
  t.teardown(async () => await lmdb.close())
  for (let i = 0; i < 1_001; i += 1) await lmdb.notes.write(`n${i}`, 'text', i === 5 ? 1_000 : 10_000)
  t.equal(await lmdb.notes.read('n5'), 'text')
  t.equal(await lmdb.notes.read('none'), null)
  now += 1_000
  t.equal(await lmdb.notes.read('n5'), null)
  t.equal(await lmdb.notes.read('n6'), 'text')
  now += 20_000
  for (let i = 0; i < 1_000; i += 1) await lmdb.notes.write('again', 'text', 1_000)
  now -= 20_000
  t.equal(await lmdb.notes.read('n6'), null, 'what was over is gone')
  const memory = await openState({ engine: 'memory' })
  t.equal(await memory.notes.read('a'), null)
  await memory.notes.write('a', 'text', 60_000)
  t.equal(await memory.notes.read('a'), 'text')
  await memory.close()
})

t.test('ids are read from the path and from the body', async (t) => {
  t.strictSame(namedBy(requestTo('/v1/responses/resp_1/cancel')), { name: 'responses:resp_1', isWanted: false, isPreference: false })
  t.strictSame(namedBy(requestTo('/v1/responses/resp_1/input_items?limit=2', { method: 'GET' })), {
    name: 'responses:resp_1', isWanted: true, isPreference: false,
  })
  t.strictSame(namedBy(requestTo('/v1/responses', { body: '{"previous_response_id":"resp_2"}' })), {
    name: 'responses:resp_2', isWanted: false, isPreference: false,
  })
  const read = requestTo('/v1/responses')
  read.body.json = { previous_response_id: 'resp_3' }
  t.strictSame(namedBy(read), { name: 'responses:resp_3', isWanted: false, isPreference: false })
  read.body.json = 'text'
  t.equal(namedBy(read), null)
  read.body.json = { previous_response_id: 5 }
  t.equal(namedBy(read), null)
  t.equal(namedBy(requestTo('/v1/responses', { body: `{"previous_response_id":"${'x'.repeat(300)}"}` })), null)
  t.equal(namedBy(requestTo('/v1/responses', { body: '{}' })), null)
  t.equal(namedBy(requestTo('/v1/chat/completions', { body: '{}' })), null)
  const bindings = new Bindings(null, () => {})
  t.equal(bindings.find({ name: 'responses:none', isWanted: true, isPreference: false }), null)
  const failed = requestTo('/v1/responses')
  failed.upstreamReply.status = 500
  bindings.keep(failed, 'u', 1_000)
})

t.test('a caller that leaves while nobody knows yet who made it has sent nothing', async (t) => {
  let tell = (_name: string | null): void => {}
  const answer = new Promise<string | null>((resolve) => { tell = resolve })
  const asked = new Signal<string>()
  const read = async (id: string): Promise<string | null> => {
    asked.push(id)
    return await answer
  }
  const gateway = await startPool(t, { rules: inOrder, gateway: { notes: { read, write: () => {} } } })
  const url = await listen(gateway.app)
  const { request } = call(`${url}/v1/responses/resp_1`, { method: 'GET' })
  await asked.next()
  request.destroy()
  t.match(await gateway.settled.next(), { outcome: 'client_abort', times: { sentAt: 0 } })
  tell('m1')
  await wait(20)
  t.strictSame(seenBy(gateway), [0, 0])
})
