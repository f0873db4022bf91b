/** Errors of members whose bytes are packed, as whatever stands in front of a provider packs them for who accepts it. */
import { brotliCompressSync, deflateRawSync, gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import { call, listen, read } from '../helpers/gateway.js'
import type { Script } from '../helpers/upstream.js'
import { inOrder, seenBy, startPool, type PoolGateway } from './pool-gateway.js'

const chat = JSON.stringify({ model: 'gpt-5', messages: [{ role: 'user', content: 'Hi' }] })
const spent = JSON.stringify({ error: { message: 'Your credit balance is too low to access the API.' } })
const otherOrganisation = JSON.stringify({ error: { type: 'invalid_request_error', code: 'mismatched_organization' } })

function packedAs (coding: string | string[], body: Buffer): Script {
  return { body, headers: { ['Content-Encoding' as string]: coding } }
}

interface Asker extends PoolGateway {
  readonly ask: (headers?: Record<string, string>) => Promise<{ readonly status: number | undefined, readonly bytes: Buffer }>
}

async function startAsker (t: Test): Promise<Asker> {
  const gateway = await startPool(t, { rules: inOrder })
  const url = await listen(gateway.app)
  return {
    ...gateway,
    ask: async (headers = {}) => {
      const reply = await call(`${url}/v1/chat/completions`, { body: chat, headers: { 'accept-encoding': 'gzip, br', ...headers } }).reply
      return { status: reply.statusCode, bytes: (await read(reply)).bytes }
    },
  }
}

const unpackable: ReadonlyArray<readonly [how: string, script: (said: string) => Script]> = [
  ['by gzip', (said) => packedAs('gzip', gzipSync(said))],
  ['by gzip in pieces', (said) => ({ ...packedAs('gzip', gzipSync(said)), split: [1, 11, 40] })],
  ['by its other name, in capitals', (said) => packedAs('X-GZIP', gzipSync(said))],
  ['by brotli', (said) => packedAs('br', brotliCompressSync(said))],
  ['without the frame of zlib', (said) => packedAs('deflate', deflateRawSync(said))],
  ['twice', (said) => packedAs('br, identity, gzip', gzipSync(brotliCompressSync(said)))],
  ['twice, told in two headers', (said) => packedAs(['gzip', 'gzip'], gzipSync(gzipSync(said)))],
  ['by gzip, and cut', (said) => packedAs('gzip', gzipSync(said).subarray(0, -8))],
  ['by gzip, followed by much else', (said) => packedAs('gzip', gzipSync(said + ' '.repeat(1_000_000)))],
]

/** What is not what it says is told in the gateway's own words, as it could hold the upstream's secret. */
const misnamed: typeof unpackable = [
  ['in name alone', (said) => packedAs('gzip', Buffer.from(said))],
  ['in name alone, which nobody knows', (said) => packedAs('rot13', Buffer.from(said))],
]

t.test('a packed error that names the account is another member\'s request', async (t) => {
  for (const [how, script] of [...unpackable, ...misnamed]) {
    const gateway = await startAsker(t)
    gateway.members[0]?.queue({ status: 400, ...script(spent) })
    t.equal((await gateway.ask()).status, 200, how)
    t.match((await gateway.settled.next()).routing.attempts, [{ result: 'credential', status: 400 }, { result: 'ok' }], how)
    t.equal((await gateway.ask()).status, 200, how)
    t.strictSame(seenBy(gateway), [1, 2], `${how}: its credential is out`)
  }
})

t.test('a packed error about what its caller named itself takes no member from the others, and passes as it came', async (t) => {
  for (const [how, script] of [...unpackable, ...misnamed]) {
    const gateway = await startAsker(t)
    const refusal = script(otherOrganisation)
    gateway.members[0]?.queue({ status: 401, ...refusal })
    const { status, bytes } = await gateway.ask({ 'openai-organization': 'org-other' })
    t.equal(status, 401, how)
    if (Buffer.isBuffer(refusal.body) && !how.includes('name alone')) t.equal(bytes.equals(refusal.body), true, how)
    t.equal((await gateway.ask()).status, 200, how)
    t.strictSame(seenBy(gateway), [2, 0], how)
  }
})

t.test('a packed limit tells when to come again', async (t) => {
  const gateway = await startAsker(t)
  const limit = { error: { code: 429, details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '37s' }] } }
  gateway.members[0]?.queue({ status: 429, body: limit, encoding: 'gzip' })
  t.equal((await gateway.ask()).status, 200)
  const [first] = gatewayOf(gateway.app).upstreamsStatus().upstreams
  const [out] = first?.models ?? []
  t.match(out, { model: 'gpt-5', reason: 'limit' })
  t.ok(Number(out?.returnsInMs) > 30_000, `${out?.returnsInMs} ms`)
})

t.test('a packed error that nobody can read, or only at great cost, is judged by its status', async (t) => {
  const bomb = gzipSync(Buffer.concat([Buffer.from(otherOrganisation), Buffer.alloc(30 * 1024 * 1024)]))
  for (const script of [packedAs('gzip', bomb), packedAs('gzip', gzipSync(otherOrganisation).subarray(3)), packedAs('rot13', bomb)]) {
    for (const [status, result] of [[401, 'credential'], [503, 'overloaded'], [400, 'client_error']] as const) {
      const gateway = await startAsker(t)
      gateway.members[0]?.queue({ status, ...script })
      t.equal((await gateway.ask()).status, status === 400 ? 400 : 200)
      t.match((await gateway.settled.next()).routing.attempts?.[0], { result, status })
    }
  }
})
