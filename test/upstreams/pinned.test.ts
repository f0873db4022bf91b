/** What keeps a conversation with its member, and what does not move it. */
import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { everyProtocol, secret } from '../helpers/gateway.js'
import { ask, overloaded, seenBy, startPool, type PoolGateway } from './pool-gateway.js'

const chat = { model: 'gpt-5', messages: [{ role: 'user', content: 'Hi' }] }

/** Which member got each of the requests since the last look. */
function watch (gateway: PoolGateway): () => number[] {
  let before = seenBy(gateway)
  return () => {
    const now = seenBy(gateway)
    const got = now.map((seen, i) => seen - Number(before[i]))
    before = now
    return got
  }
}

t.test('a conversation whose member is out moves, and does not come back with it', async (t) => {
  const gateway = await startPool(t, { members: 3 })
  const look = watch(gateway)
  const turn = async (): Promise<number> => {
    t.equal((await ask(gateway, chat, { 'session-id': 'one' })).status, 200)
    const got = look()
    t.equal(got.reduce((sum, n) => sum + n), 1, got.join())
    return got.indexOf(1)
  }
  const home = await turn()
  t.equal(await turn(), home)
  const member = gateway.members[home]
  if (member === undefined) throw new Error('none')
  member.respond = () => overloaded
  for (let i = 0; i < 5; i += 1) await ask(gateway, chat, { 'session-id': 'one' })
  look()
  const second = await turn()
  t.not(second, home)
  member.clear()
  await wait(1_200)
  for (let i = 0; i < 6; i += 1) t.equal(await turn(), second)
})

t.test('a single busy agent keeps to its member, however many turns it takes', async (t) => {
  const gateway = await startPool(t, { members: 3 })
  for (let i = 0; i < 40; i += 1) t.equal((await ask(gateway, chat, { 'session-id': 'one' })).status, 200)
  t.strictSame(seenBy(gateway).filter((seen) => seen > 0), [40])
})

t.test('what changes in each turn of an agent does not move it', async (t) => {
  const gateway = await startPool(t, { members: 4 })
  const anthropic = { 'anthropic-version': '2023-06-01' }
  const turn = (i: number) => ({
    model: 'claude',
    max_tokens: 9,
    system: [
      { type: 'text', text: `x-anthropic-billing-header: cc_version=2.1; cch=${i}${i}` }, { type: 'text', text: 'You are an agent.' },
    ],
    messages: [{ role: 'user', content: `turn ${i}` }],
  })
  for (let i = 0; i < 6; i += 1) {
    t.equal((await ask(gateway, turn(i), { ...anthropic, 'x-claude-code-session-id': 'cc' }, '/v1/messages')).status, 200)
  }
  t.strictSame(seenBy(gateway).filter((seen) => seen > 0), [6], 'with a session')
  const other = await startPool(t, { members: 4 })
  for (let i = 0; i < 6; i += 1) await ask(other, turn(i), anthropic, '/v1/messages')
  t.strictSame(seenBy(other).filter((seen) => seen > 0), [6], 'without one its key is what tells')
})

t.test('callers who chose the same words for their conversations are not one', async (t) => {
  const secrets = Array.from({ length: 12 }, (_, i) => `${secret}-${i}`)
  const gateway = await startPool(t, {
    members: 4,
    gateway: {
      groups: { all: { protocols: everyProtocol, upstream: 'pool' } },
      keys: secrets.map((text, i) => ({ id: `k${i}`, group: 'all', secret: text })),
    },
  })
  for (const text of secrets) {
    t.equal((await ask(gateway, { ...chat, prompt_cache_key: 'default' }, { authorization: `Bearer ${text}` })).status, 200)
  }
  t.ok(seenBy(gateway).filter((seen) => seen > 0).length > 1, seenBy(gateway).join())
})

t.test('a conversation keeps to its member when it has grown beyond what is checked on the loop', async (t) => {
  const gateway = await startPool(t, { members: 4 })
  for (let at = 0; at < 4; at += 1) {
    const reached = new Set<number>()
    for (const turns of [10, 100, 300]) {
      const messages = Array.from({ length: turns }, (_, turn) => ({
        role: turn % 2 === 0 ? 'user' : 'assistant', content: [{ type: 'text', text: 'x'.repeat(1_500) }],
      }))
      const before = seenBy(gateway)
      const { status } = await ask(gateway, {
        model: 'm', max_tokens: 10, messages, metadata: { user_id: `user_1_account__session_1111111${at}-2222-3333-4444-555555555555` },
      }, { 'x-api-key': secret, 'anthropic-version': '2023-06-01' }, '/v1/messages')
      t.equal(status, 200)
      reached.add(seenBy(gateway).findIndex((count, member) => count > Number(before[member])))
    }
    t.equal(reached.size, 1, `conversation ${at} reached ${[...reached].join()}`)
  }
})
