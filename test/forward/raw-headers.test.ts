import fc from 'fast-check'
import t from 'tap'
import { HeaderReader, readHeaders, type Headers } from '../../plugins/forward/raw-headers.js'

type Pair = readonly [name: string, value: string]

function bytesOf (pairs: readonly Pair[]): Buffer[] {
  return pairs.flat().map((text) => Buffer.from(text, 'latin1'))
}

function read (pairs: readonly Pair[]): Headers {
  return readHeaders(bytesOf(pairs))
}

/** The same by hand: names in lower case, values of one name in the order in which they came. */
function expected (pairs: readonly Pair[]): Record<string, string | string[]> {
  const lists = new Map<string, string[]>()
  for (const [name, value] of pairs) lists.set(name.toLowerCase(), [...lists.get(name.toLowerCase()) ?? [], value])
  return Object.fromEntries([...lists].map(([name, [value = '', ...more]]) => [name, more.length === 0 ? value : [value, ...more]]))
}

/** More than are remembered. */
function many (value: string): Pair[] {
  return Array.from({ length: 80 }, (_, i) => [`x-${i}`, value])
}

t.test('headers are read in any case, with values as they came', async (t) => {
  const rows: ReadonlyArray<readonly Pair[]> = [
    [],
    [['Content-Type', 'application/json'], ['x-empty', '']],
    [['content-type', 'application/json'], ['X-Latin', 'caf\u00e9']],
    [['Set-Cookie', 'a'], ['set-cookie', 'b'], ['SET-COOKIE', 'c']],
    [['x-long', 'a'.repeat(200)], ['X-Long', 'b'.repeat(200)], ['x-short', 'a'], ['x-short', 'b']],
    [['constructor', 'own'], ['toString', '1'], ['tostring', '2']],
  ]
  for (const pairs of rows) t.strictSame(read(pairs), expected(pairs))
})

t.test('a name that means something to the language changes no object', async (t) => {
  const headers = read([['__proto__', 'x'], ['x-a', '1']])
  t.strictSame(Object.keys(headers), ['x-a'])
  t.equal(Object.getPrototypeOf(headers), Object.prototype)
  t.notOk('x-a' in {})
})

t.test('whatever came before, a reply has its own headers: other names, another order, names of the same length, names ' +
  'without end', async () => {
  const name = fc.oneof(
    fc.constantFrom('date', 'Date', 'etag', 'ETag', 'x-ratelimit-limit-tokens', 'x-ratelimit-reset-tokens'),
    fc.integer({ min: 0, max: 2_000 }).map((n) => `x-${n}`)
  )
  const pairs = fc.array(fc.tuple(name, fc.string({ maxLength: 4 }).filter((value) => /^[ -~]*$/.test(value))), { maxLength: 12 })
  fc.assert(fc.property(fc.array(pairs, { maxLength: 6 }), (replies) => {
    const reader = new HeaderReader()
    return replies.every((reply) => JSON.stringify(reader.read(bytesOf(reply))) === JSON.stringify(expected(reply)))
  }), {
    numRuns: 1_000,
    examples: [
      [[[['date', 'a'], ['etag', 'b']], [['Date', 'a'], ['ETag', 'c']], [['etag', 'c'], ['date', 'a']]]],
      [[[['set-cookie', 'a']], [['set-cookie', 'b']], [['x-1', 'y'.repeat(65)]], [['x-1', 'z'.repeat(65)]]]],
      [[many('one'), many('other')]],
    ],
  })
})
