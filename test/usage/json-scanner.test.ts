import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import { JsonScanner } from '../../plugins/usage/json-scanner.js'
import { compileSearch } from '../../plugins/usage/search-tree.js'
import { meter } from './meter-reply.js'

/** What a path finds in a parsed document: of the elements of an array the last one that has it. */
function lookUp (value: unknown, path: readonly string[]): unknown {
  const [key, ...rest] = path
  if (key === undefined) return value
  if (key === '#') return Array.isArray(value) ? value.length : undefined
  if (key === '*') {
    return Array.isArray(value) ? value.map((element) => lookUp(element, rest)).findLast((found) => found !== undefined) : undefined
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  return Object.hasOwn(value, key) ? lookUp(Reflect.get(value, key), rest) : undefined
}

const paths = ['usage', 'x.usage', 'model', 'list.*.end', 'list.#', 'deep.er.est']

function scan (pieces: readonly Buffer[], wanted: readonly string[] = paths): JsonScanner {
  const scanner = new JsonScanner(compileSearch(wanted))
  for (const piece of pieces) scanner.push(piece, 0, piece.length)
  return scanner
}

function cut (bytes: Buffer, at: readonly number[]): Buffer[] {
  const offsets = [0, ...[...at].sort((a, b) => a - b), bytes.length]
  return offsets.slice(1).map((end, index) => bytes.subarray(offsets[index], end))
}

/** Documents made of the keys that are looked for, and of decoys for them. */
const names = fc.constantFrom(
  'usage', 'x', 'model', 'list', 'end', 'deep', 'er', 'est', 'usag', 'usages', '', 'a"b', 'back\\', 'ü', '{', ']'
)
const scalars = fc.oneof(
  fc.constant(null), fc.boolean(), fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.string({ unit: 'binary' }),
  fc.constantFrom('"usage":{"x":1}', '\\"}', 'a\\\\', '"', '\\', '}]', 'data: {"usage":1}\n\n', 'x'.repeat(70)))
const { value: documents } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof({ depthSize: 'small', withCrossShrink: true },
    scalars,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(names, tie('value'), { maxKeys: 6 })),
}))
const roots = fc.dictionary(names, documents, { maxKeys: 8 })
const spaces = fc.constantFrom(undefined, 1, '\t', '\r\n ')

t.test('finds what JSON.parse finds, however the bytes are cut', async (t) => {
  fc.assert(fc.property(roots, spaces, fc.array(fc.nat(), { maxLength: 8 }), (root, space, cuts) => {
    const text = JSON.stringify(root, null, space)
    const bytes = Buffer.from(text)
    const scanner = scan(cut(bytes, cuts.map((at) => at % (bytes.length + 1))))
    const expected = paths.map((path) => lookUp(JSON.parse(text), path.split('.')))
    return scanner.done && isDeepStrictEqual(scanner.found, expected)
  }), { numRuns: 3_000 })
  t.pass()
})

t.test('finds the same in one byte per piece, with escaped keys', async (t) => {
  const escape = (text: string): string => [...text].map((char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')
  const text =
    `{"${escape('usage')}":{"a":1},"${escape('no')}":2,"x":{"us\\u0061ge":"\\ud83d\\ude00"},` +
      `"${'long'.repeat(200)}":{"usage":1},"model":"caf\u00e9 \u{1f600}"}`
  const bytes = Buffer.from(text)
  const expected = paths.map((path) => lookUp(JSON.parse(text), path.split('.')))
  t.strictSame(scan([...bytes].map((byte) => Buffer.of(byte))).found, expected)
  t.strictSame(scan([bytes]).found, expected)
  const invalid = Buffer.from('{"\\x":1,"usage":2}')
  t.equal(scan([invalid], ['usage']).found[0], 2, 'a key that is no JSON is nobody\'s')
})

t.test('a later value for the same key replaces the earlier one and all below it, as in JSON.parse', async (t) => {
  for (const text of [
    '{"usage":1,"usage":{"a":2}}',
    '{"x":{"usage":1},"x":{}}',
    '{"x":{"usage":1},"x":null}',
    '{"x":{"usage":1},"x":[{"usage":2}]}',
    '{"list":[{"end":1},{"end":2}],"list":[{}]}',
    '{"list":[{"end":1}],"list":"none"}',
    '{"list":[],"deep":{"er":{"est":[]}},"deep":{"er":1}}',
  ]) {
    t.strictSame(scan([Buffer.from(text)]).found, paths.map((path) => lookUp(JSON.parse(text), path.split('.'))), text)
  }
})

t.test('a nested usage is never taken for usage', async (t) => {
  const decoys = {
    choices: [{
      message: { tool_calls: [{ function: { arguments: '{"usage":{"prompt_tokens":1}}' } }], usage: { a: 1 } }, usage: { a: 2 },
    }],
    content: [{ type: 'tool_use', input: { usage: { input_tokens: 9 } } }],
    text: '"usage":{"prompt_tokens":99}',
    meta: { usage: { prompt_tokens: 3 }, x: { usage: 4 } },
  }
  t.equal(scan([Buffer.from(JSON.stringify(decoys))]).found[0], undefined)
  t.strictSame(scan([Buffer.from(JSON.stringify({ ...decoys, usage: { own: 1 } }))]).found[0], { own: 1 })
})

t.test('a value that is larger than is kept is given up, in one piece or many', async (t) => {
  const bytes = Buffer.from(JSON.stringify({ usage: { pad: 'x'.repeat(70_000) }, model: 'm' }))
  for (const pieces of [[bytes], cut(bytes, [50_000]), cut(bytes, [1_000, 30_000, 66_000, 69_000])]) {
    const scanner = scan(pieces)
    t.equal(scanner.overflow, true)
    t.strictSame(scanner.found.slice(0, 3), [undefined, undefined, 'm'])
  }
  t.equal(scan([Buffer.from('{"usage":1}')]).overflow, false)
})

t.test('keeps no byte of a piece that is not its own: the owner may use it again', async (t) => {
  const bytes = Buffer.from('{"x":{"usage":{"a":[1,2],"b":"text"}},"model":"some"}')
  const scanner = new JsonScanner(compileSearch(paths))
  for (const at of bytes.keys()) {
    const piece = Buffer.from(bytes.subarray(at, at + 1))
    scanner.push(piece, 0, 1)
    piece.fill(0)
  }
  t.strictSame(scanner.found.slice(0, 3), [undefined, { a: [1, 2], b: 'text' }, 'some'])
})

t.test('tells where a document ends, and reads another one after it', async (t) => {
  const bytes = Buffer.from(' {"usage":1}{"usage":2} ')
  const scanner = new JsonScanner(compileSearch(paths))
  const end = scanner.push(bytes, 0, bytes.length)
  t.equal(end, 12)
  t.equal(scanner.found[0], 1)
  scanner.reset()
  t.equal(scanner.found[0], undefined)
  t.equal(scanner.push(bytes, end, bytes.length), 23)
  t.equal(scanner.found[0], 2)
  t.equal(scanner.push(bytes, 23, 24), 23, 'nothing is read after the end')
})

t.test('reads no byte beyond the end that it is given', async (t) => {
  const bytes = Buffer.from(
    '{"usage":12,"":"","a\\"":"some text of many words, \\"and\\" more",' +
      '"b":"\\"","c":"","x":{"usage":[1,"}"]},"list":[{"end":true}],"model":"m"}'
  )
  for (let size = 1; size <= bytes.length; size++) {
    const scanner = new JsonScanner(compileSearch(paths))
    for (let at = 0; at < bytes.length; at += size) scanner.push(bytes, at, Math.min(at + size, bytes.length))
    t.strictSame([scanner.done, ...scanner.found], [true, 12, [1, '}'], 'm', true, 1, undefined], `${size} at a time`)
  }
})

t.test('a text ends where it ends, however long it is and whatever it ends with', async (t) => {
  const ends = ['', '\\', '"', '\\"', '\\\\']
  const texts = Array.from({ length: 80 }, (_, length) => ends.map((end) => 'x'.repeat(length) + end)).flat()
  const wrong = texts.filter((usage) => scan([Buffer.from(JSON.stringify({ usage, model: 'm' }))]).found[0] !== usage)
  t.strictSame(wrong, [])
})

t.test('what broke off leaves nothing behind for the document after it', async (t) => {
  const broken = Buffer.from('{"list":[{"end":"a\\\\"}],"usage":{"a":[1,"\\"b"]},"mod\\u0065l":"some","x":{"usage":12}}')
  const whole = Buffer.from('{"other":"","number":1,"model":"a name"}')
  const wrong = [...broken.keys()].filter((at) => [...whole.keys()].some((cutAt) => {
    const scanner = new JsonScanner(compileSearch(paths))
    for (const piece of cut(broken.subarray(0, at), [at >> 1])) scanner.push(piece, 0, piece.length)
    scanner.reset()
    for (const piece of cut(whole, [cutAt])) scanner.push(piece, 0, piece.length)
    return !scanner.done || !isDeepStrictEqual(scanner.found, scan([whole]).found)
  }))
  t.strictSame(wrong, [])
})

t.test('a value is kept by its own size, wherever it stands in its piece and however often it is cut', async (t) => {
  const bytes = Buffer.from(JSON.stringify({ pad: 'x'.repeat(60_000), usage: { pad: 'y'.repeat(60_000), own: 1 } }))
  for (const pieces of [cut(bytes, [62_000]), cut(bytes, [62_000, 90_000, 110_000])]) {
    const scanner = scan(pieces)
    t.match(scanner.found[0], { own: 1 })
    t.equal(scanner.overflow, false)
  }
})

t.test('is not done with what is no whole document', async (t) => {
  for (const text of ['', '{', '{"usage":1', '{"a" 1}', '{"a":1 "b":2}', '{a:1}', '<html>', '{,}', '12']) {
    t.equal(scan([Buffer.from(text)]).done, false, text)
  }
  for (const text of ['[1]', '"a"', '{}', '[DONE]', ' [ ] ']) t.equal(scan([Buffer.from(text)]).done, true, text)
})

t.test('a found value that is no JSON counts as absent', async (t) => {
  t.equal(scan([Buffer.from('{"usage":nonsense}')]).found[0], undefined)
})

t.test('a list where an object is looked for holds nothing, in a small reply as in a large one', async (t) => {
  for (const pad of ['', 'x'.repeat(8_000)]) {
    const reply = { pad, x_groq: [{ usage: { prompt_tokens: 9 } }], usage: { prompt_tokens: 1, completion_tokens: 2 } }
    const { llm } = meter('chat_completions', [Buffer.from(JSON.stringify(reply))])
    t.strictSame([llm.usage.tokens?.input, llm.usage.tokens?.output], [1, 2])
  }
})
