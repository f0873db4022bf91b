import fc from 'fast-check'
import t from 'tap'
import { textAt, textsAt, textsAtAny } from '../../plugins/core/body/json-text.js'
import { callOf } from '../../plugins/upstreams/call.js'
import { renameModel } from '../../plugins/upstreams/rename-model.js'
import { requestTo, upstreamOf } from './request.js'

const names = new Map([['ours', 'theirs'], ['q"uote', 'th"eirs\\']])

/** Undefined where nothing was replaced. */
function renameIn (text: string, path: string, prefix?: string): string | undefined {
  const body = Buffer.from(text)
  const sent = renameModel(body, textsAtAny(body, [path]), names, prefix)
  return sent === body ? undefined : sent.toString()
}

function renamed (text: string): string | undefined {
  return renameIn(text, 'model')
}

t.test('one value is replaced in the bytes, and nothing else', async (t) => {
  const cases: ReadonlyArray<readonly [body: string, sent: string]> = [
    ['{"model":"ours"}', '{"model":"theirs"}'],
    ['{ "n" : 1.0 ,\t"model"\n: "ours" , "x":12345678901234567890}', '{ "n" : 1.0 ,\t"model"\n: "theirs" , "x":12345678901234567890}'],
    ['{"mod\\u0065l":"our\\u0073"}', '{"mod\\u0065l":"theirs"}'],
    ['{"model":"ours","model":"ours"}', '{"model":"theirs","model":"theirs"}'],
    ['{"model":"other","model":"ours"}', '{"model":"other","model":"theirs"}'],
    ['{"model":"q\\"uote"}', '{"model":"th\\"eirs\\\\"}'],
    [
      '{"messages":[{"model":"ours","content":"\\"model\\":\\"ours\\""}],"model":"ours"}',
      '{"messages":[{"model":"ours","content":"\\"model\\":\\"ours\\""}],"model":"theirs"}',
    ],
    ['{"x":"model","model":"ours"}', '{"x":"model","model":"theirs"}'],
  ]
  for (const [body, sent] of cases) t.equal(renamed(body), sent, body)
  for (const body of [
    '{}', '{"model":1}', '{"model":["ours"]}', '{"model":{"model":"ours"}}', '{"model":"other"}', '["model","ours"]',
    '{"a":{"model":"ours"}}', '{"model":"o',
  ]) {
    t.equal(renamed(body), undefined, body)
  }
})

t.test('a model that a path into the body leads to is renamed, and no other', async (t) => {
  const rename = (text: string): string | undefined => renameIn(text, 'requests.*.model', 'models/')
  const request = (model: string): string => `{"model":"${model}","content":{"parts":[{"text":"ours","model":"ours"}]}}`
  t.equal(
    rename(`{"model":"ours","requests":[${request('models/ours')},[${request('ours')}], ${request('ours')},"ours"]}`),
    `{"model":"ours","requests":[${request('models/theirs')},[${request('ours')}], ${request('theirs')},"ours"]}`
  )
  for (const other of [
    '{"requests":{"model":"ours"}}', '{"requests":[{"model":["ours"]}]}', '{"requests":[{"a":{"model":"ours"}}]}', '["ours"]',
    '{"requests":[{"model":"models/other"}]}', '"ours"', ']},:"ours"', '}:"ours"',
  ]) t.equal(rename(other), undefined, other)
})

t.test('the texts that a path leads to are found as a parser would', async () => {
  const item = fc.oneof(fc.jsonValue(), fc.record({ model: fc.jsonValue() }), fc.record({ a: fc.jsonValue(), model: fc.string() }))
  fc.assert(fc.property(fc.record({ x: fc.jsonValue(), requests: fc.array(item) }), (json) => {
    const bytes = Buffer.from(JSON.stringify(json))
    const found = textsAt(bytes, ['requests', '*', 'model']).map((span) => textAt(bytes, span))
    const members = json.requests.map((each): unknown => each === null || Array.isArray(each) ? null : Reflect.get(Object(each), 'model'))
    return JSON.stringify(found) === JSON.stringify(members.filter((member) => typeof member === 'string'))
  }), { numRuns: 500 })
})

t.test('whatever else a body holds, it parses to the same with the other name', async () => {
  const body = fc.dictionary(fc.string(), fc.jsonValue())
  fc.assert(fc.property(body, fc.boolean(), (rest, first) => {
    const { model: _, ...others } = rest
    const json = first ? { model: 'ours', ...others } : { ...others, model: 'ours' }
    const sent: unknown = JSON.parse(String(renamed(JSON.stringify(json))))
    return JSON.stringify(sent) === JSON.stringify({ ...json, model: 'theirs' })
  }), { numRuns: 300 })
})

t.test('the texts of a key are found as a parser would', async () => {
  fc.assert(fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.string(), (json, key) => {
    const bytes = Buffer.from(JSON.stringify(json))
    const found = textsAt(bytes, [key]).map((span) => textAt(bytes, span))
    const value = Object.hasOwn(json, key) ? json[key] : undefined
    return JSON.stringify(found) === JSON.stringify(typeof value === 'string' ? [value] : [])
  }), { numRuns: 300 })
})

t.test('both names are known of a request, and its own bytes stay', async (t) => {
  const upstream = upstreamOf({ url: 'https://h', models: { ours: 'theirs' } })
  const llm = requestTo('/v1/chat/completions', { body: '{"model":"ours"}', model: 'ours' })
  t.match(callOf(upstream, llm, null, null), { body: Buffer.from('{"model":"theirs"}') })
  t.match(llm, { model: 'ours', routing: { sentModel: 'theirs', upstream: 'u' } })
  t.equal(llm.body.bytes?.toString(), '{"model":"ours"}')
  llm.body.outgoing = Buffer.from('{"x":1,"model":"ours"}')
  t.match(callOf(upstream, llm, null, null), { body: Buffer.from('{"x":1,"model":"theirs"}') }, 'what was put into it is kept')
  llm.body.modelPlaces = [[7, 13]]
  llm.body.outgoing = Buffer.from('{"x":1,"ours","model":"ours"}')
  t.match(callOf(upstream, llm, null, null), { body: Buffer.from('{"x":1,"theirs","model":"ours"}') }, 'nobody looks again')
  const other = requestTo('/v1/chat/completions', { body: '{"model":"other"}', model: 'other' })
  t.match(callOf(upstream, other, null, null), { body: other.body.bytes })
  t.equal(other.routing.sentModel, null)
})
