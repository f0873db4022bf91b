import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import { everyProtocol, secret } from '../helpers/gateway.js'
import { ask, inOrder, overloaded, seenBy, startPool } from './pool-gateway.js'

t.test('an upstream without a credential is sent none, and not the caller\'s', async (t) => {
  const gateway = await startPool(t, { members: 1 })
  const [member] = gateway.members
  const { url } = member ?? {}
  const bare = await startPool(t, {
    members: 1,
    gateway: { pools: {}, upstreams: { main: { url: String(url) } }, groups: { all: { protocols: everyProtocol, upstream: 'main' } } },
  })
  t.equal((await ask(bare)).status, 200)
  const sent = member?.seen.at(-1)
  t.equal(sent?.headers.authorization, undefined)
  t.notMatch(JSON.stringify([sent?.url, sent?.rawHeaders]), secret)
})

t.test('a secret that ended between two requests is renewed once for all', async (t) => {
  let asked = 0
  const gateway = await startPool(t, {
    members: 1, pool: { attempts: 1 }, upstreams: [{ credential: async () => { asked += 1; await wait(10); return `token-${asked}` } }],
  })
  const [member] = gateway.members
  if (member === undefined) throw new Error('none')
  member.respond = ({ headers }) => headers.authorization === 'Bearer token-2' ? null : { status: 401, body: { error: {} } }
  const answers = await Promise.all(Array.from({ length: 100 }, async () => await ask(gateway)))
  t.ok(answers.every(({ status }) => status === 200))
  t.equal(asked, 2)
  t.equal(member.seen.length, 200)
  member.respond = () => ({ status: 401, body: { error: { message: 'still' } } })
  t.match(await ask(gateway), { status: 401, body: /still/ })
})

t.test('to renew a secret takes no attempt from what may be sent', async (t) => {
  const credential = async (): Promise<string> => `secret-${performance.now()}`
  const gateway = await startPool(t, { rules: inOrder, pool: { attempts: 2 }, upstreams: [{ credential }] })
  gateway.members[0]?.queue({ status: 401, body: {} }, overloaded)
  t.equal((await ask(gateway)).status, 200)
  t.strictSame(seenBy(gateway), [2, 1])
  t.match(gatewayOf(gateway.app).upstreamsStatus().upstreams, [{ state: 'up', reason: null }, { state: 'up' }], 'nor is the new one blamed')
  const { body } = await gateway.app.inject('/metrics')
  t.match(body, /^llm_gateway_failovers_total\{pool="pool",reason="credential"\} 1$/m)
})

t.test('a secret is fetched anew where it was refused, and not for what else a provider has against a request', async (t) => {
  let asked = 0
  const credential = (): string => {
    asked += 1
    return 'secret-0'
  }
  for (const [script, seen] of [
    [{ status: 401, body: { error: { code: 'mismatched_organization' } } }, [1, 0]], [{ status: 403, body: {} }, [1, 1]],
  ] as const) {
    const gateway = await startPool(t, { rules: inOrder, upstreams: [{ credential }] })
    gateway.members[0]?.queue(script)
    asked = 0
    await ask(gateway)
    t.strictSame([asked, seenBy(gateway)], [1, seen])
  }
})

t.test('another member is asked where a refused secret stays the same', async (t) => {
  const gateway = await startPool(t, { rules: inOrder, upstreams: [{ credential: () => 'the-same' }] })
  gateway.members[0]?.queue({ status: 401, body: {} })
  t.equal((await ask(gateway)).status, 200)
  t.strictSame(seenBy(gateway), [1, 1])
})

t.test('each member has its own secret renewed, once, also after one whose new secret was refused', async (t) => {
  const credential = (name: string): (() => string) => {
    let asked = 0
    return () => {
      asked += 1
      return `${name}-${asked}`
    }
  }
  const gateway = await startPool(t, { rules: inOrder, upstreams: [{ credential: credential('one') }, { credential: credential('two') }] })
  const [first, second] = gateway.members
  if (first === undefined || second === undefined) throw new Error('none')
  first.respond = () => ({ status: 401, body: {} })
  second.respond = ({ headers }) => headers.authorization === 'Bearer two-1' ? { status: 401, body: {} } : null
  t.equal((await ask(gateway)).status, 200)
  const sent = gateway.members.map(({ seen }) => seen.map(({ headers }) => headers.authorization))
  t.strictSame(sent, [['Bearer one-1', 'Bearer one-2'], ['Bearer two-1', 'Bearer two-2']])
  t.equal((await ask(gateway)).status, 200, 'and is not left alone')
  t.strictSame(seenBy(gateway), [2, 3])
})

t.test('without its secret a member is passed by, and alone it is a native 503', async (t) => {
  const broken = (): string => { throw new Error('s3cret') }
  const gateway = await startPool(t, { rules: inOrder, upstreams: [{ credential: broken }] })
  t.equal((await ask(gateway)).status, 200)
  t.strictSame(seenBy(gateway), [0, 1])
  const alone = await startPool(t, { members: 1, upstreams: [{ credential: { file: '/nowhere/token' } }] })
  const answer = await ask(alone)
  t.equal(answer.status, 503)
  t.match(JSON.parse(answer.body), { error: { code: 'upstream_credential_unavailable' } })
  t.notMatch(answer.body, /nowhere|s3cret/)
  t.match(await alone.settled.next(), { errorCode: 'upstream_credential_unavailable', times: { sentAt: 0 } })
  t.strictSame(seenBy(alone), [0])
})
