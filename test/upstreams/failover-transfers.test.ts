import t from 'tap'
import { call, listen, read } from '../helpers/gateway.js'
import type { Upstream } from '../helpers/upstream.js'
import { inOrder, seenBy, startPool } from './pool-gateway.js'

const chat = { model: 'gpt-5', messages: [{ role: 'user', content: 'Hi' }] }

/** Has all replies of a member come under a transfer coding that nobody can pass on. */
function packTransfers (member: Upstream, status: string): void {
  member.respond = ({ raw }) => {
    raw.res.socket?.write(
      `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`
    )
    return { stallAt: 'headers' }
  }
}

t.test('a member whose replies nobody can pass on is left alone', async (t) => {
  const gateway = await startPool(t, { rules: inOrder })
  const [first] = gateway.members
  if (first !== undefined) packTransfers(first, '200 OK')
  const url = await listen(gateway.app)
  const askOnce = async () => (await call(`${url}/v1/chat/completions`, { body: JSON.stringify(chat) }).reply).statusCode
  for (let i = 0; i < 5; i += 1) {
    t.equal(await askOnce(), 502)
    t.match(await gateway.settled.next(), { errorCode: 'upstream_invalid', routing: { attempts: [{ upstream: 'm0', result: 'reset' }] } })
  }
  t.equal(await askOnce(), 200)
  t.strictSame(seenBy(gateway), [5, 1])
})

t.test('a kept reply under a transfer coding that nobody can pass on ends its request once, as a failure', async (t) => {
  const gateway = await startPool(t, { rules: inOrder })
  for (const member of gateway.members) packTransfers(member, '429 Slow Down')
  const url = await listen(gateway.app)
  const answer = await call(`${url}/v1/chat/completions`, { body: JSON.stringify(chat) }).reply
  t.equal(answer.statusCode, 502)
  t.match(JSON.parse((await read(answer)).bytes.toString()), { error: { code: 'upstream_invalid' } })
  t.match(await gateway.settled.next(), { status: 502, outcome: 'upstream_error', errorCode: 'upstream_invalid', holds: 0 })
  t.equal(gateway.settled.size, 0)
})
