import fc from 'fast-check'
import t from 'tap'
import { runs } from '../helpers/runs.js'
import { readJson } from '../../plugins/validation/json.js'
import { BodyRefusal } from '../../plugins/validation/body-refusal.js'
import { duplicateKey } from '../../plugins/core/body/duplicate-key.js'
import { countMembers, hasDuplicates } from '../../plugins/validation/scan.js'

const maxValues = 1_000_000

function read (text: string | Buffer, maxDepth = 64, values = maxValues): unknown {
  const result = readJson(Buffer.from(text), { maxDepth, maxValues: values })
  return result instanceof BodyRefusal ? `${result.keyword}: ${result.error.message}` : result.json
}

t.test('bodies are parsed as JSON.parse does, whatever they are made of', async (t) => {
  const texts = [
    'null', '5', '"x"', '[]', '{}', '{"a":{"a":1}}', '[{"a":1},{"a":2}]', ' \r\n\t{ "a" : [ true , false , null ] } ',
    '{"__proto__":{"x":1},"constructor":{"prototype":1}}', '{"a\\"b":"c\\\\","d":"\\\\\\""}', '{"\\ud800":"lone surrogate"}',
    '{"é":"Grüße, 世界 🌍"}', JSON.stringify({ long: '世界 🌍 é '.repeat(1000) }), '{"1":1,"01":2,"1.0":3}', '{"a":1,"A":2}',
    '{"text":"{\\"a\\":1,\\"a\\":2}"}', '{"":1}', '{"a":1e400,"b":12345678901234567890}',
  ]
  for (const text of texts) t.equal(JSON.stringify(read(text)), JSON.stringify(JSON.parse(text)), text.slice(0, 60))
})

t.test('bytes that two readers could read differently are refused', async (t) => {
  const cases: Array<[what: string, text: string | Buffer, reason: RegExp]> = [
    ['nothing', '', /^empty: The request has no body\.$/],
    ['a byte order mark', '\ufeff{}', /^bom: .*byte order mark\.$/],
    ['UTF-16', Buffer.from('{}', 'utf16le').fill(0xff, 1, 2), /^utf8: .*not valid UTF-8\.$/],
    ['an overlong encoding', Buffer.from([0x22, 0xc0, 0xaf, 0x22]), /^utf8: /],
    ['an encoded surrogate', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), /^utf8: /],
    ['a cut character', Buffer.from([0x22, 0xe4, 0xb8, 0x22]), /^utf8: /],
    ['Latin-1', Buffer.from('"é"', 'latin1'), /^utf8: /],
    ['a key that comes twice', '{"model":"a","model":"b"}', /^duplicate_key: .*the key "model" stands in it twice\.$/],
    ['the same key, escaped', '{"model":"a","\\u006dodel":"b"}', /^duplicate_key: .*"model"/],
    [
      'the same key far apart',
      `{"model":"a","x":${'['.repeat(40)}${']'.repeat(40)},"y":"model","z":{"q":1},"model":"b"}`,
      /^duplicate_key: /,
    ],
    ['a key with a quote in it, twice', '{"a\\"":1,"a\\u0022":2}', /^duplicate_key: .*"a\\""/],
    ['__proto__ twice', '{"__proto__":1,"__proto__":2}', /^duplicate_key: /],
    ['too many levels of lists', '['.repeat(65), /^depth: .*deeper than 64 levels\.$/],
    ['too many levels of objects', '{"a":'.repeat(65), /^depth: /],
  ]
  for (const [what, text, reason] of cases) t.match(read(text), reason, what)
})

t.test('what is no JSON is refused without echoing it', async (t) => {
  const texts = [
    '{', '{"a":}', '{"a":1,}', '[1 2]', '{"a":"line\nbreak"}', 'secret', '{"secret":tru}', '1 1', '"\\x"', '"secret', '{secret:1}', 'NaN',
    '{"a":NaN}',
    '}', ']]]]', '{"a":1}}', "{'a':1}", '// secret\n{}', '{"a":undefined}', '\u0000', '"\\"', '"', '{"a":1,"secret"', '{"a":"\\"}',
  ]
  for (const text of texts) {
    const reason = String(read(text))
    t.match(reason, /^json: The request body is not valid JSON: .+\.$/, text)
    t.notMatch(reason, /secret/, text)
  }
})

t.test('a body may be as deep as the limit, and a million brackets cost nothing', async (t) => {
  t.strictSame(read('['.repeat(64) + ']'.repeat(64)), JSON.parse('['.repeat(64) + ']'.repeat(64)))
  t.match(read('['.repeat(1_000_000)), /^depth: /)
  t.match(read('{"a":['.repeat(1_000_000)), /^depth: /)
  t.strictSame(read(JSON.stringify({ text: '['.repeat(1_000_000) })), { text: '['.repeat(1_000_000) }, 'brackets in a text are text')
})

t.test('a body may have as many values as the limit, and not one more', async (t) => {
  for (const [text, values] of [['[1,2,3]', 3], ['{"a":1,"b":2,"c":3}', 3], ['[[1]]', 2], ['[[],1]', 3], ['{"a":{}}', 2]] as const) {
    t.strictSame(read(text, 64, values), JSON.parse(text), text)
    t.match(read(text, 64, values - 1), /^values: /, text)
  }
})

/** Depth as the parser sees it: 0 for a scalar. */
function depthOf (json: unknown): number {
  if (typeof json !== 'object' || json === null) return 0
  return 1 + Object.values(json).reduce((deepest: number, child) => Math.max(deepest, depthOf(child)), 0)
}

const anyJson = fc.jsonValue({ maxDepth: 6 })
const spacing = fc.constantFrom('', ' ', '\n', '\t', '\r\n  ')

/** Writes a JSON text with odd spacing and escapes, so that it is not the one spelling of JSON.stringify. */
function spelled (json: unknown, space: string, escape: boolean): string {
  if (Array.isArray(json)) return `[${space}${json.map((item) => spelled(item, space, escape)).join(`${space},${space}`)}${space}]`
  if (typeof json === 'object' && json !== null) {
    const members = Object.entries(json)
      .map(([key, value]) => `${spelled(key, space, escape)}${space}:${space}${spelled(value, space, escape)}`)
    return `{${members.join(`${space},`)}${space}}`
  }
  const plain = JSON.stringify(json)
  return escape
    ? plain.replace(/[a-z](?=[^\\]*"$)/gi, (char, at: number) => plain[0] !== '"' || plain[at - 1] === '\\' ? char : escaped(char))
    : plain
}

function escaped (char: string): string {
  return '\\u' + char.charCodeAt(0).toString(16).padStart(4, '0')
}

t.test('any JSON, however it is spelled, is read as JSON.parse reads it and to its exact depth', async (t) => {
  fc.assert(fc.property(anyJson, spacing, fc.boolean(), (json, space, escape) => {
    const text = spelled(json, space, escape)
    const bytes = Buffer.from(text)
    const depth = depthOf(json)
    const copy = Buffer.from(bytes)
    const exact = readJson(bytes, { maxDepth: depth, maxValues })
    if (exact instanceof BodyRefusal || JSON.stringify(exact.json) !== JSON.stringify(json)) return false
    const tight = depth === 0 ? null : readJson(bytes, { maxDepth: depth - 1, maxValues })
    return bytes.equals(copy) && (tight === null || (tight instanceof BodyRefusal && tight.keyword === 'depth'))
  }), { numRuns: runs(3000) })
  t.pass()
})

const key = fc.constantFrom('model', 'mod\\u0065l', '\\u006dodel', 'stream', 'a"b', 'é', '', '__proto__', 'Model')
const members = fc.array(fc.tuple(key, anyJson, fc.boolean()), { maxLength: 6 })

t.test('a duplicate key is found exactly where a set of decoded keys finds one', async (t) => {
  let duplicated = 0
  fc.assert(fc.property(members, spacing, (list, space) => {
    const seen = new Set<string>()
    let first: string | null = null
    const parts = list.map(([name, value, raw]) => {
      const spelling = raw && name.startsWith('mod') ? `"${name}"` : JSON.stringify(name)
      const decoded: string = JSON.parse(spelling)
      if (seen.has(decoded)) first ??= decoded
      seen.add(decoded)
      return `${space}${spelling}${space}:${spelled(value, space, false)}`
    })
    const bytes = Buffer.from(`{${parts.join(',')}}`)
    if (first !== null) duplicated += 1
    const result = readJson(bytes, { maxDepth: 64, maxValues })
    const found = result instanceof BodyRefusal ? result.error.param : null
    const within = Buffer.from(`[1,{"a":"{:","list":[${String(bytes)}]}]`)
    return found === first && duplicateKey(bytes) === first && countMembers(bytes, { maxDepth: 64, maxValues }) === list.length &&
      hasDuplicates(within, JSON.parse(String(within))) === (first !== null)
  }), { numRuns: runs(3000) })
  t.ok(duplicated > 300, `${duplicated} bodies had one`)
})

t.test('any bytes at all give an answer, and what JSON.parse refuses is refused', async (t) => {
  const soup = fc.string({ unit: fc.constantFrom('{', '}', '[', ']', '"', '\\', ':', ',', 'a', '1', ' ', 'é') })
  fc.assert(fc.property(soup, (text) => {
    const result = readJson(Buffer.from(text), { maxDepth: 16, maxValues })
    let parsed = true
    try {
      JSON.parse(text)
    } catch {
      parsed = false
    }
    return result instanceof BodyRefusal || parsed
  }), { numRuns: runs(5000) })
  fc.assert(fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
    readJson(Buffer.from(bytes), { maxDepth: 16, maxValues })
  }), { numRuns: runs(2000) })
  t.pass('no exception')
})
