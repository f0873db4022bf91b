/** Checks 1-18 of the checklist: every address that clients build reaches its provider as the one canonical path. */
import t, { type Test } from 'tap'
import { endpoints, modelLists } from '../../plugins/protocols/index.js'
import { calls, main, plain, send, type Call } from './calls.js'
import { startGateway, type Setup } from './gateway.js'

let gateway: Setup
t.before(async () => { gateway = await startGateway(t) })

async function reaches (t: Test, call: Call, path: string, canonical = call.path): Promise<void> {
  const reply = await send(gateway.origin, call, { path })
  t.equal(reply.status, 200, `${call.method} ${path}: ${reply.text.slice(0, 120)}`)
  t.equal(gateway.upstream.seen.at(-1)?.url, canonical)
}

t.test('the calls of these tests are those of the protocol table', async (t) => {
  const known = [...endpoints, ...Object.values(modelLists).flatMap(({ list, retrieve }) => [...list, ...retrieve])].map(({ id }) => id)
  t.same(calls.map(({ id }) => id).sort(), known.sort())
})

const chat = plain('chat_completions')
const messages = plain('messages')
const gemini = plain('generate_content.generateContent')
const action = 'models/model-1:generateContent'

// What clients send for base addresses that people paste.
const checks: ReadonlyArray<readonly [check: string, call: Call, paths: readonly string[]]> = [
  ['check 1: OpenAI clients with /v1 and /v1/', chat, ['/v1/chat/completions']],
  ['check 2: OpenAI clients with the bare origin', chat, ['/chat/completions']],
  ['check 3: OpenAI clients with /v1/v1', chat, ['/v1/v1/chat/completions', '/v1beta/chat/completions']],
  ['check 4: clients with a double slash', chat, ['//chat/completions', '//v1/chat/completions', '/v1//chat/completions']],
  ['check 5: Anthropic clients with the bare origin', messages, ['/v1/messages']],
  ['check 6: Anthropic clients with /v1', messages, ['/v1/v1/messages', '/v1beta/v1/messages', '/v1/v1/v1/messages']],
  ['check 7: AI SDK Anthropic with the bare origin', messages, ['/messages', '/v1beta/messages']],
  ['check 8: genai 2 with the bare origin', gemini, [`/v1beta/${action}`]],
  ['check 9: genai 2 with /v1beta', gemini, [`/v1beta/v1beta/${action}`]],
  ['check 10: genai 2 with /v1', gemini, [`/v1/v1beta/${action}`, `/v1/v1/v1beta/${action}`]],
  ['check 11: genai 3 with the bare origin', gemini, [`/v1/${action}`, `/v1beta/v1/${action}`, `/${action}`]],
  ['check 12: LangChain Google with a trailing slash', gemini, [`//v1beta/${action}`, `/v1//v1beta/${action}`]],
]

for (const [check, call, paths] of checks) {
  t.test(check, async (t) => {
    for (const path of paths) await reaches(t, call, path)
  })
}

const runs = [
  '', '/v1', '/v1beta', '/v1/v1', '/v1/v1beta', '/v1beta/v1', '/v1beta/v1beta', '/v1alpha', '//v1', '/v1//v1beta',
  '/v1/v1beta/v1/v1beta/v1/v1beta/v1/v1beta',
]

t.test('checks 1-12, for every endpoint: any run of prefixes and slashes, up to eight', async (t) => {
  for (const call of calls) {
    const tail = call.path.replace(/^\/v1(beta)?/, '')
    for (const run of runs) {
      await reaches(t, call, run + tail)
      await reaches(t, call, `${run}${tail}/`)
      await reaches(t, call, `/${run}/${tail}?a=%2F&b`, `${call.path}?a=%2F&b`)
    }
  }
})

t.test('check 13: a model with / : and @ arrives unchanged', async (t) => {
  for (const model of ['vendor/m', 'm:free@1', 'vendor/m:free@1', 'publishers/google/models/m']) {
    await reaches(t, gemini, `/v1beta/models/${model}:generateContent`, `/v1beta/models/${model}:generateContent`)
  }
})

t.test('check 14: tuned models', async (t) => {
  await reaches(t, gemini, '/v1/v1beta/tunedModels/m-1:generateContent', '/v1beta/tunedModels/m-1:generateContent')
})

t.test('check 15: an endpoint twice is a 404 that names the base address, in the family of the last one', async (t) => {
  const before = gateway.upstream.seen.length
  for (const first of main) {
    for (const last of main) {
      const reply = await send(gateway.origin, last, { path: first.path + last.path })
      t.equal(reply.status, 404, first.path + last.path)
      t.match(reply.text, last.family === 'openai' ? /twice.* http:\/\/127\.0\.0\.1:\d+\/v1,/ : /twice.* http:\/\/127\.0\.0\.1:\d+,/)
      t.equal(reply.headers['x-should-retry'], 'false')
    }
  }
  t.equal(gateway.upstream.seen.length, before)
})

t.test('check 16: a mount prefix', async (t) => {
  const { origin, upstream } = await startGateway(t, { prefix: '/pre' })
  for (const call of main) {
    for (const path of [`/pre${call.path}`, `/pre/v1${call.path}`, `//pre/${call.path}`]) {
      t.equal((await send(origin, call, { path })).status, 200, path)
      t.equal(upstream.seen.at(-1)?.url, call.path)
    }
  }
  t.equal((await send(origin, chat)).status, 404, 'outside of the mount')
})

t.test('check 17: an encoded slash in a model name is kept', async (t) => {
  await reaches(t, plain('models.openai.retrieve'), '/v1/models/vendor%2Fm', '/v1/models/vendor%2Fm')
})

t.test('check 18: the model list goes to the family that its headers tell', async (t) => {
  for (const family of ['openai', 'anthropic', 'gemini']) {
    await reaches(t, plain(`models.${family}`), '/v1/models')
    await reaches(t, plain(`models.${family}.retrieve`), '/v1/models/model-1')
  }
  const { origin, upstream } = gateway
  t.equal(
    (await send(origin, plain('models.gemini'), { path: '/v1/models?key=sk-gemini-4713', headers: { 'x-goog-api-key': null } })).status, 200
  )
  t.equal(upstream.seen.at(-1)?.url, '/v1beta/models')
})

t.test('no path leads to a redirect: clients do not send their POST again', async (t) => {
  for (const path of ['/v1/messages/', '//v1/messages', '/V1/messages', '/v1%20/models']) {
    const { status } = await send(gateway.origin, messages, { path })
    t.ok([200, 400, 404].includes(status), `${path}: ${status}`)
  }
})

t.test('a blank behind a pasted base address is refused with the right one', async (t) => {
  const reply = await send(gateway.origin, plain('models.openai'), { path: '/v1%20/models' })
  t.match(reply, { status: 404, json: { error: { message: /http:\/\/127\.0\.0\.1:\d+\/v1 / } } })
})
