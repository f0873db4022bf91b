/** Checks 31-39: real bodies, which must be passed on unchanged. */
import { hash } from 'node:crypto'
import { excerpt, expect, expectEnvelope, expectStatus, type Change, type Check, type Kind } from '../check.js'
import { everyFamily } from '../needs.js'
import { familyOf } from '../subject.js'
import { accept, type Accepted } from './accept.js'

const sha256 = (bytes: string | Buffer): string => hash('sha256', bytes, 'hex').slice(0, 12)

const user = { role: 'user', content: 'Say hi.' }
const tool = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }
const toolResult = { role: 'tool', tool_call_id: 'call_1', content: '1' }

const accepted: readonly Accepted[] = [
  { number: 31, title: 'a messages body of 110 kB', kind: 'messages', changes: () => [{ fields: { system: 'x'.repeat(110_000) } }] },
  {
    number: 34,
    title: 'an assistant message without content, or with null',
    kind: 'chat',
    changes: () => [{}, { content: null }].map((content) => ({
      fields: { messages: [user, { role: 'assistant', ...content, tool_calls: [tool] }, toolResult] },
    })),
  },
  {
    number: 35,
    title: 'responses with an array input, a prompt, a previous response',
    kind: 'responses',
    changes: () => [
      { fields: { input: [{ role: 'user', content: [{ type: 'input_text', text: 'hi' }] }] } },
      { fields: { input: undefined, prompt: { id: 'pmpt_1' } } },
      { fields: { input: undefined, previous_response_id: 'resp_1' } },
    ],
  },
  {
    number: 36,
    title: 'generateContent in snake_case',
    kind: 'gemini',
    changes: () => [{ fields: { system_instruction: { parts: [{ text: 'short' }] }, generation_config: { max_output_tokens: 5 } } }],
  },
  {
    number: 37,
    title: 'embeddings of token arrays',
    kind: 'embeddings',
    changes: () => [{ fields: { input: [1, 2] } }, { fields: { input: [[1], [2]] } }],
  },
]

const boundary = 'kit-boundary'
const form = [
  `--${boundary}`, 'Content-Disposition: form-data; name="model"', '', 'model-1',
  `--${boundary}`, 'Content-Disposition: form-data; name="prompt"', '', 'a dot',
  `--${boundary}`, 'Content-Disposition: form-data; name="image"; filename="a.png"', 'Content-Type: image/png', '',
  '\u0000\u00ff\r\n-- not a boundary',
  `--${boundary}--`, '',
].join('\r\n')

const broken: ReadonlyArray<readonly [kind: Kind, status: number, about: string, change: Change]> = [
  ['chat', 404, 'unknown path', { path: '/v1/nothing' }],
  ['chat', 415, 'wrong media type', { headers: { 'content-type': 'text/plain' } }],
  ['chat', 400, 'broken JSON', { body: '{"model":' }],
  ['messages', 415, 'wrong media type', { headers: { 'content-type': 'text/plain' } }],
  ['messages', 400, 'broken JSON', { body: '{"model":' }],
  ['gemini', 415, 'wrong media type', { headers: { 'content-type': 'text/plain' } }],
  ['gemini', 400, 'broken JSON', { body: '{"contents":' }],
]

export const bodies: readonly Check[] = [
  ...accepted.map(accept),
  {
    number: 32,
    title: 'unknown fields travel, byte for byte',
    needs: ['openai', 'far side'],
    async run ({ ask, far }) {
      const body = '{ "model":"model-1", "zz_new": {"a" : 1e2}, "messages":[ {"role":"user","content":"\\u00e9 \\/ é","x":1} ]}\n'
      expectStatus(await ask('chat', { body }), 200)
      const got = far.seen.map((seen) => seen.body.toString()).join()
      expect(got === body, `arrived as ${excerpt(got)}`)
      return `sha256 ${sha256(body)} on both sides`
    },
  },
  {
    number: 33,
    title: 'a missing field: 400 that names it, nothing forwarded',
    needs: ['openai'],
    async run ({ ask, far }) {
      const error = expectEnvelope(await ask('chat', { fields: { messages: undefined } }), 'openai', 400)
      expect(String(error.param).includes('messages'), `param ${String(error.param)}`)
      expect(far.seen.length === 0, 'the far side got the request')
      return String(error.message)
    },
  },
  {
    number: 38,
    title: 'an image edit as a form, byte for byte',
    needs: ['openai', 'far side'],
    async run ({ ask, far }) {
      const body = Buffer.from(form, 'latin1')
      const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` }
      expectStatus(await ask('images', { path: '/v1/images/edits', body, headers }), 200)
      const [arrived] = far.seen.map((seen) => `${seen.headers['content-type']}, ${sha256(seen.body)}`)
      expect(arrived === `${headers['content-type']}, ${sha256(body)}`, `arrived as ${arrived}`)
      return `sha256 ${sha256(body)} on both sides`
    },
  },
  {
    number: 39,
    title: 'errors before any check have the envelope too',
    needs: everyFamily,
    async run ({ ask }) {
      for (const [kind, status, about, change] of broken) {
        expectEnvelope(await ask(kind, change), familyOf(kind), status, `${kind}, ${about}`)
      }
      return '404, 415 and 400 in the envelope'
    },
  },
]
