/** A conversation that a provider holds for a while goes on at the member that holds it, where that serves. */
import t from 'tap'
import { memoryNotes } from '../../plugins/core/upstream/memory-notes.js'
import { everyProtocol, secret, startGateway } from '../helpers/gateway.js'
import type { Upstream } from '../helpers/upstream.js'
import { ask, inOrder, overloaded, seenBy, startPool, type PoolGateway, type Reply } from './pool-gateway.js'

const url = '/v1/messages'
const headers = { 'x-api-key': secret, 'anthropic-version': '2023-06-01', 'anthropic-beta': 'message-threads-2026-08-12' }

function turn (thread: object | undefined, text?: string): object {
  return { model: 'claude-opus-5-5', max_tokens: 9, messages: text === undefined ? [] : [{ role: 'user', content: text }], thread }
}

const goOn = (id: string, text?: string): object => turn({ type: 'continue', previous_message_id: id }, text)

/** A provider that knows the threads that it holds, and no other. */
function holdThreads (upstream: Upstream, name: string): void {
  let made = 0
  upstream.respond = ({ json: { thread, model } }) => {
    const id: unknown = typeof thread === 'object' && thread !== null ? Reflect.get(thread, 'previous_message_id') : undefined
    if (id !== undefined && !String(id).startsWith(`msg_${name}`)) {
      const error = { type: 'not_found_error', message: name, details: { error_code: 'thread_not_found' } }
      return { status: 404, body: { type: 'error', error } }
    }
    made += 1
    return {
      body: {
        id: `msg_${name}${made}`,
        type: 'message',
        role: 'assistant',
        model,
        content: [],
        stop_reason: 'pause_turn',
        usage: { input_tokens: 5, output_tokens: 1 },
      },
    }
  }
}

async function send (gateway: PoolGateway, body: object): Promise<Reply> {
  const reply = await ask(gateway, body, headers, url)
  await gateway.settled.next()
  return reply
}

const idOf = ({ body }: Reply): string => String(JSON.parse(body).id)

for (const [name, text] of [['a thread', 'Hi'], ['a thread that begins with a large conversation', 'x'.repeat(300_000)]] as const) {
  t.test(`${name} goes on at the member that holds it, also in another process, and with no new message`, async (t) => {
    const notes = memoryNotes()
    const gateway = await startPool(t, { rules: inOrder, gateway: { notes } })
    gateway.members.forEach((member, i) => holdThreads(member, String(i)))
    gateway.members[0]?.queue(overloaded)
    const first = await send(gateway, turn({ type: 'create' }, text))
    t.match(idOf(first), /^msg_1/, 'the second member made it')
    const [before = 0] = seenBy(gateway)
    const second = await send(gateway, goOn(idOf(first)))
    t.match([second.status, idOf(second)], [200, /^msg_1/])

    const other = await startGateway(t, '', {
      ...gateway.options, groups: { all: { protocols: everyProtocol, upstream: 'pool' } }, keys: [{ id: 'caller', group: 'all', secret }],
    })
    t.match((await ask(other, goOn(idOf(second), 'And?'), headers, url)).status, 200)
    t.equal(seenBy(gateway)[0], before)
  })
}

t.test('where that member does not serve, another one is asked, whose word that it knows no such thread is passed on', async (t) => {
  const gateway = await startPool(t, { rules: inOrder, pool: { attempts: 2 } })
  gateway.members.forEach((member, i) => holdThreads(member, String(i)))
  gateway.members[0]?.queue(overloaded)
  const id = idOf(await send(gateway, turn({ type: 'create' }, 'Hi')))
  gateway.members[1]?.queue({ status: 429, headers: { 'retry-after': '30' }, body: { type: 'error', error: { message: 'slow down' } } })
  t.match(await send(gateway, goOn(id, 'And?')), { status: 404, body: /thread_not_found/ }, 'the attempt after one that failed')
  const [, before] = seenBy(gateway)
  t.match(await send(gateway, goOn(id, 'And?')), { status: 404, body: /thread_not_found/ }, 'while it is out')
  t.equal(seenBy(gateway)[1], before)
  t.match(idOf(await send(gateway, turn({ type: 'create' }, 'all of it'))), /^msg_0/, 'a client begins anew where it serves')
})

t.test('nothing is kept of messages without a thread', async (t) => {
  const written: string[] = []
  const notes = memoryNotes()
  const gateway = await startPool(t, {
    gateway: { notes: { ...notes, write: async (id, value, ttlMs) => { written.push(id); await notes.write(id, value, ttlMs) } } },
  })
  gateway.members.forEach((member, i) => holdThreads(member, String(i)))
  for (const thread of [undefined, null, 'create', { type: 5 }]) await send(gateway, { ...turn(undefined, 'Hi'), thread })
  t.strictSame(written, [])
  await send(gateway, turn({ type: 'create' }, 'Hi'))
  t.match(written, [/^messages:msg_/])
})
