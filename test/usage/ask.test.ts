import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import { chatUsage } from '../../plugins/protocols/chat-completions/usage.js'
import { messagesUsage } from '../../plugins/protocols/messages/usage.js'
import type { UsageRules } from '../../plugins/protocols/usage-rules.js'
import { textsAtAny } from '../../plugins/core/body/json-text.js'
import type { ModelCall } from '../../plugins/core/call/model-call.js'
import { askFor } from '../../plugins/usage/ask.js'
import { withBody } from '../../plugins/usage/take-body.js'
import { parseJson } from '../../plugins/core/body/parse-json.js'
import { requestFor } from './meter-reply.js'

interface Asked {
  llm: ModelCall
  asked: boolean
  sent: string | null
  headers: Record<string, string>
}

async function ask (body: string | null, rules: UsageRules = chatUsage, json?: unknown): Promise<Asked> {
  const llm = requestFor('chat_completions')
  llm.body.bytes = body === null ? null : Buffer.from(body)
  llm.body.json = json
  llm.body.modelPlaces = body === null ? null : textsAtAny(Buffer.from(body), ['model'])
  const headers = { 'accept-encoding': 'gzip, br' }
  const asked = await askFor(llm, headers, rules)
  return { llm, asked, sent: llm.body.outgoing?.toString() ?? null, headers }
}

const rewritten: [name: string, body: string, sent: string][] = [
  ['absent', '{"model":"m","stream":true}', '{"stream_options":{"include_usage":true},"model":"m","stream":true}'],
  ['absent, with space', ' {\n "stream": true }', ' {"stream_options":{"include_usage":true},\n "stream": true }'],
  ['null', '{"stream_options": null ,"stream":true}', '{"stream_options": {"include_usage":true} ,"stream":true}'],
  ['empty', '{"stream":true,"stream_options":{ }}', '{"stream":true,"stream_options":{"include_usage":true }}'],
  [
    'other options',
    '{"stream":true,"stream_options":{"include_obfuscation":false}}',
    '{"stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false}}',
  ],
  [
    'false', '{"stream":true,"stream_options":{"include_usage":false,"a":1}}',
    '{"stream":true,"stream_options":{"include_usage":true,"a":1}}',
  ],
  [
    'false, then true',
    '{"stream":true,"stream_options":{"include_usage":false, "include_usage":true},"n":1.0}',
    '{"stream":true,"stream_options":{"include_usage":true},"n":1.0}',
  ],
  [
    'true, then false',
    '{"stream":true,"stream_options":{"include_usage":true,"include_usage":false,"a":[{"b":":"}]}}',
    '{"stream":true,"stream_options":{"include_usage":true,"a":[{"b":":"}]}}',
  ],
  [
    'twice, one of them escaped',
    '{"stream":true,"stream_options":{"include\\u005fusage":false,"a":{"include_usage":1},"include_usage":true}}',
    '{"stream":true,"stream_options":{"include_usage":true,"a":{"include_usage":1}}}',
  ],
  [
    'twice, beside letters of several bytes',
    '{"stream":true,"stream_options":{"include_usage":false,"a":"größe 👋","include_usage":true},"n":1}',
    '{"stream":true,"stream_options":{"include_usage":true,"a":"größe 👋"},"n":1}',
  ],
  ['true elsewhere, and twice where it counts', '{"x":{"stream_options":{"include_usage":true}},"stream":true,' +
    '"stream\\u005foptions":{"include_usage":false,"include_usage":true}}',
  '{"x":{"stream_options":{"include_usage":true}},"stream":true,"stream\\u005foptions":{"include_usage":true}}'],
  [
    'null flag',
    '{"stream":true,"stream_options":{"a":{"include_usage":false},"include_usage" : null}}',
    '{"stream":true,"stream_options":{"a":{"include_usage":false},"include_usage" : true}}',
  ],
  ['text that looks like it',
    '{"messages":[{"content":"\\"stream_options\\":null}"}],"x":{"stream_options":null},"stream":true,"stream_options":null}',
    '{"messages":[{"content":"\\"stream_options\\":null}"}],"x":{"stream_options":null},"stream":true,' +
    '"stream_options":{"include_usage":true}}'],
  [
    'numbers that no writer keeps',
    '{"seed":12345678901234567890,"top_p":1.0,"stream":true}',
    '{"stream_options":{"include_usage":true},"seed":12345678901234567890,"top_p":1.0,"stream":true}',
  ],
]

for (const [name, body, sent] of rewritten) {
  t.test(`stream_options: ${name}`, async (t) => {
    for (const json of [undefined, JSON.parse(body)]) {
      const result = await ask(body, chatUsage, json)
      t.strictSame([result.asked, result.sent], [true, sent])
      t.equal(result.llm.body.bytes?.toString(), body, 'what was received stays as it is')
      t.equal(result.headers['accept-encoding'], 'identity', 'an event can be taken out of plain bytes only')
    }
  })
}

/** Leading white space makes a body large, and puts its fields on either side of where a turn ends. */
const margins = [...Array(12).keys()].map((index) => ' '.repeat(256 * 1024 - index * 7))

for (const [name, body, sent] of rewritten) {
  t.test(`stream_options of a large body: ${name}`, async (t) => {
    for (const margin of margins) {
      for (const json of [undefined, JSON.parse(body)]) {
        const result = await ask(`${margin}${body} `, chatUsage, json)
        t.strictSame([result.asked, result.sent?.trim()], [true, sent.trim()])
        t.equal(result.sent?.length, margin.length + sent.length + 1)
        t.equal(result.headers['accept-encoding'], 'identity')
      }
    }
  })
}

for (const [name, body] of rewritten) {
  t.test(`what is known of where the model stands moves with what is put before it: ${name}`, async (t) => {
    const twice = body.replace('{', '{"model":"first",').replace(/\}$/, ',"model":"last"}')
    for (const margin of ['', ' '.repeat(300_000)]) {
      const sent = await ask(margin + twice, chatUsage, JSON.parse(twice))
      t.ok(sent.sent)
      const places = textsAtAny(Buffer.from(String(sent.sent)), ['model'])
      t.same(sent.llm.body.modelPlaces, places)
      await askFor(sent.llm, sent.headers, chatUsage)
      t.same(sent.llm.body.modelPlaces, places, 'asked for a second time, as by a not-found handler')
    }
  })
}

const untouched: [name: string, body: string | null, rules?: UsageRules][] = [
  ['asked by the caller', '{"stream":true,"stream_options":{"include_usage":true}}'],
  ['asked by the caller, with other options', '{"stream":true,"stream_options": { "include_usage" : true, "a": {"include_usage":false} }}'],
  ['not streamed', '{"stream":false}'],
  ['no word of a stream', '{}'],
  ['no body that was read', null],
  ['no object', '[]'],
  ['no JSON', '{"stream":true'],
  ['stream_options of another kind', '{"stream":true,"stream_options":"usage"}'],
  ['a list of stream_options', '{"stream":true,"stream_options":[]}'],
  ['a protocol that tells usage unasked', '{"stream":true}', messagesUsage],
]

for (const [name, body, rules] of untouched) {
  t.test(`leaves a request alone: ${name}`, async (t) => {
    const result = await ask(body, rules)
    t.strictSame([result.asked, result.sent, result.headers['accept-encoding']], [false, null, 'gzip, br'])
    if (body === null) return
    const large = await ask(margins.join('') + body, rules)
    t.strictSame([large.asked, large.sent, large.headers['accept-encoding']], [false, null, 'gzip, br'], 'a large one')
    const parsed = parseJson(body)
    if (parsed !== undefined) {
      t.match(await ask(margins.join('') + body, rules, parsed), { asked: false, sent: null }, 'a large one that was checked')
    }
  })
}

t.test('options that are too large to be looked at are replaced: they could hide the usage', async (t) => {
  const body = JSON.stringify({ stream: true, stream_options: { a: 'x'.repeat(300_000), include_usage: false } })
  t.match(await ask(body), { asked: true, sent: '{"stream":true,"stream_options":{"include_usage":true}}' })
})

t.test('a large body that is not what it was said to be is left alone', async (t) => {
  t.match(await ask(margins.join('') + '{"stream":true', chatUsage, { stream: true, stream_options: null }), { asked: false, sent: null })
})

t.test('a caller that leaves while its large body is asked in is not sent on', async (t) => {
  const llm = requestFor('chat_completions')
  llm.settled = true
  withBody(Object({ request: { body: null } }), llm, async () => {}, () => t.fail('it went on'))
  await new Promise(setImmediate)
})

t.test('changes nothing but the switch, in any body', async (t) => {
  const options = fc.oneof(
    fc.constant(undefined), fc.constant(null), fc.dictionary(fc.constantFrom('include_usage', 'a', '"', 'x}'), fc.jsonValue())
  )
  const bodies = fc.tuple(
    fc.dictionary(fc.string().map((name) => `x${name}`), fc.jsonValue()), options, fc.boolean(), fc.constantFrom(undefined, 2)
  )
  await fc.assert(fc.asyncProperty(bodies, async ([fields, streamOptions, last, space]) => {
    const body = {
      ...(!last && { stream_options: streamOptions }), ...fields, stream: true, ...(last && { stream_options: streamOptions }),
    }
    const { asked, sent } = await ask(JSON.stringify(body, null, space))
    if (!asked) return body.stream_options?.['include_usage'] === true
    const expected = { ...body, stream_options: { ...body.stream_options, include_usage: true } }
    return isDeepStrictEqual(JSON.parse(String(sent)), JSON.parse(JSON.stringify(expected)))
  }), { numRuns: 2_000 })
  t.pass()
})
