import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import { call, listen } from '../helpers/gateway.js'
import { Signal } from '../helpers/upstream.js'
import { ask, inOrder, metricsOf, overloaded, seenBy, startPool } from './pool-gateway.js'

const chat = { model: 'gpt-5', messages: [{ role: 'user', content: 'Hi' }] }

/** What the only member of a pool saw after a caller left that it had refused once. */
async function leaveWhileItWaits (t: Parameters<typeof startPool>[0]): Promise<readonly number[]> {
  const alone = await startPool(t, { members: 1 })
  const url = await listen(alone.app)
  alone.members[0]?.queue(overloaded)
  const left = call(`${url}/v1/chat/completions`, { body: JSON.stringify(chat) })
  await alone.members[0]?.requests.next()
  await wait(20)
  left.request.destroy()
  await alone.settled.next()
  await wait(300)
  return seenBy(alone)
}

t.test('a caller that leaves takes its attempt along, and nothing is sent after it', async (t) => {
  const gateway = await startPool(t, { rules: inOrder, pool: { retryOn: [503, 'timeout'] } })
  const [first, second] = gateway.members
  const url = await listen(gateway.app)
  first?.queue(overloaded)
  second?.queue({ stallAt: 'headers' })
  const { request } = call(`${url}/v1/chat/completions`, { body: JSON.stringify(chat) })
  const arrived = await second?.arrivals.next()
  request.destroy()
  t.equal(await arrived?.aborted, true)
  const llm = await gateway.settled.next()
  t.match(llm, { outcome: 'client_abort', routing: { attempts: [{ result: 'overloaded' }, { result: 'left', status: 0 }] } })
  t.equal(llm.usage.missing, 'client_abort', 'it was sent, and may be paid for')
  t.strictSame(seenBy(gateway), [1, 1])
  t.match(JSON.stringify(metricsOf(gateway)), /upstream_active_requests",\[\{"upstream":"m0","value":0\},\{"upstream":"m1","value":0\}\]/)

  // It waits for 50 to 150 ms, which a busy machine may miss.
  let seen: unknown = null
  for (let tries = 0; tries < 5 && String(seen) !== '1'; tries += 1) seen = await leaveWhileItWaits(t)
  t.strictSame(seen, [1], 'while it waited to ask the same one again')
})

t.test('a caller that leaves before its secret or its connection came has sent nothing', async (t) => {
  let refuse = (_error: Error): void => {}
  const later = new Promise<string>((_resolve, reject) => { refuse = reject })
  const gateway = await startPool(t, { upstreams: [{ credential: async () => await later }], rules: inOrder })
  const url = await listen(gateway.app)
  const early = call(`${url}/v1/chat/completions`, { body: JSON.stringify(chat) })
  await wait(50)
  early.request.destroy()
  t.match(await gateway.settled.next(), { outcome: 'client_abort', times: { sentAt: 0 } })
  refuse(new Error('late'))
  await wait(50)
  t.strictSame(seenBy(gateway), [0, 0])
  t.match(gatewayOf(gateway.app).upstreamsStatus().upstreams, [{ active: 0 }, { active: 0 }], 'nor does it take a place at the next member')

  const narrow = await startPool(t, { members: 1, gateway: { forward: { connections: 1 } } })
  const [member] = narrow.members
  const other = await listen(narrow.app)
  let release = (): void => {}
  const held = new Promise<void>((resolve) => { release = resolve })
  member?.queue({ before: async () => await held })
  const running = ask(narrow)
  await member?.arrivals.next()
  const waiting = call(`${other}/v1/chat/completions`, { body: JSON.stringify(chat) })
  await wait(100)
  waiting.request.destroy()
  t.match(await narrow.settled.next(), { outcome: 'client_abort', times: { sentAt: 0 } })
  release()
  t.equal((await running).status, 200)
  await wait(50)
  t.strictSame(seenBy(narrow), [1])
})

t.test('a caller that leaves while a secret is renewed has nothing sent again', async (t) => {
  let give = (_secret: string): void => {}
  const asked: string[] = []
  const later = new Promise<string>((resolve) => { give = resolve })
  const gateway = await startPool(t, { members: 1, upstreams: [{ credential: async () => asked.push('') === 1 ? 'old' : await later }] })
  gateway.members[0]?.queue({ status: 401, body: {} })
  const url = await listen(gateway.app)
  const { request } = call(`${url}/v1/chat/completions`, { body: JSON.stringify(chat) })
  await gateway.members[0]?.requests.next()
  while (asked.length < 2) await wait(5)
  request.destroy()
  const llm = await gateway.settled.next()
  t.equal(llm.outcome, 'client_abort')
  give('new')
  await wait(50)
  t.strictSame(seenBy(gateway), [1])
  t.equal(llm.holds, 0, 'it ends once')
  t.notMatch((await gateway.app.inject('/metrics')).body, /^llm_gateway_failovers_total\{.*\} [1-9]/m)
})

t.test('a caller that leaves while it is asked for a secret, or who made a response, takes no place for good', async (t) => {
  const [later, found] = [new Signal<string>(), new Signal<string>()]
  const asked = new Signal<void>()
  const gateway = await startPool(t, {
    rules: inOrder,
    upstreams: [{
      credential: async () => {
        asked.push()
        return await later.next()
      },
    }],
    pool: { attemptTimeoutMs: 50, retryOn: ['connect', 'timeout'] },
    gateway: {
      notes: {
        read: async () => {
          asked.push()
          return await found.next()
        },
        write: () => {},
      },
    },
  })
  const url = await listen(gateway.app)
  const leave = async (path: string, body: object): Promise<void> => {
    const { request } = call(url + path, { body: JSON.stringify(body) })
    await asked.next()
    request.destroy()
    await gateway.settled.next()
  }
  await leave('/v1/responses', { model: 'gpt-5', input: 'Hi', previous_response_id: 'resp_1' })
  found.push('m1')
  await leave('/v1/chat/completions', chat)
  later.push('secret-0')
  // An attempt would have failed by then.
  await wait(200)
  t.strictSame(seenBy(gateway), [0, 0])
  t.match(gatewayOf(gateway.app).upstreamsStatus().upstreams, [{ active: 0 }, { active: 0 }])
  t.notMatch((await gateway.app.inject('/metrics')).body, /^llm_gateway_failovers_total\{.*\} [1-9]/m)
})

t.test('a caller that left while a hook of the host waited has nothing sent', async (t) => {
  const gateway = await startPool(t)
  let goOn = (): void => {}
  const waited = new Promise<void>((resolve) => { goOn = resolve })
  gateway.app.addHook('preHandler', async () => await waited)
  const url = await listen(gateway.app)
  const { request } = call(`${url}/v1/chat/completions`, { body: JSON.stringify(chat) })
  await wait(100)
  request.destroy()
  await gateway.settled.next()
  goOn()
  await wait(50)
  t.strictSame(seenBy(gateway), [0, 0])
})
