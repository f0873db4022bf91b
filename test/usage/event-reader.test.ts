import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import { EventReader } from '../../plugins/usage/event-reader.js'

/** Data of each event, read in pieces. The last entry is what stood after the last blank line. */
function read (pieces: readonly Buffer[]): string[] {
  const events: string[] = []
  let data = ''
  const reader = new EventReader({ push: (chunk, from, to) => { data += chunk.toString('latin1', from, to) } })
  for (const piece of pieces) {
    for (let at = 0; at < piece.length;) {
      at = reader.next(piece, at)
      if (at === -1) break
      events.push(data)
      data = ''
    }
  }
  return [...events, data].map((text) => Buffer.from(text, 'latin1').toString())
}

/** The same by the letter of the HTML standard, all at once. Blank lines alone give events without data. */
function reference (bytes: Buffer): string[] {
  const text = bytes.toString('latin1').replace(/^\u00ef\u00bb\u00bf/, '')
  const lines = text.split(/\r\n|\r|\n/)
  const events: string[] = []
  let data: string[] = []
  const last = lines.pop() ?? ''
  for (const line of lines) {
    if (line === '') {
      events.push(data.join('\n'))
      data = []
    } else if (line === 'data') data.push('')
    else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''))
  }
  if (last.startsWith('data:')) data.push(last.slice(5).replace(/^ /, ''))
  return [...events, data.join('\n')].map((found) => Buffer.from(found, 'latin1').toString())
}

const cases: [string, string, string[]][] = [
  ['LF', 'data: a\n\ndata: b\n\n', ['a', 'b', '']],
  ['CRLF', 'data: a\r\n\r\ndata: b\r\n\r\n', ['a', 'b', '']],
  ['CR', 'data: a\r\rdata: b\r\r', ['a', 'b', '']],
  ['mixed line ends', 'data: a\n\r\ndata: b\r\n\rdata: c\r\n\n', ['a', 'b', 'c', '']],
  ['byte order mark', '\uFEFFdata: a\n\n', ['a', '']],
  ['a mark that is not at the start', 'data: a\n\n\uFEFFdata: b\n\n', ['a', '', '']],
  ['several data lines', 'data: {"a":\ndata: 1}\n\n', ['{"a":\n1}', '']],
  ['no space, one space, two spaces', 'data:a\n\ndata: a\n\ndata:  a\n\n', ['a', 'a', ' a', '']],
  ['empty data', 'data:\n\ndata\n\ndata: \n\n', ['', '', '', '']],
  ['other fields', 'event: x\nid: 1\nretry: 2\ndata: a\ndat: b\ndatas: c\n data: d\nDATA: e\n: comment\n\n', ['a', '']],
  ['comment alone', ': keepalive\n\ndata: a\n\n', ['', 'a', '']],
  ['blank lines', '\n\n\ndata: a\n\n\n\n', ['', '', '', 'a', '', '', '']],
  ['an event without its end', 'data: a\n\ndata: b', ['a', 'b']],
  ['colons in data', 'data: a: b:\n\n', ['a: b:', '']],
  ['text of many bytes', 'data: \u{1f600} \u00fc\n\n', ['\u{1f600} \u00fc', '']],
]

for (const [name, text, expected] of cases) {
  t.test(name, async (t) => {
    const bytes = Buffer.from(text)
    t.strictSame(read([bytes]), expected)
    t.strictSame(read([...bytes].map((byte) => Buffer.of(byte))), expected, 'one byte at a time')
    for (let at = 0; at <= bytes.length; at++) t.strictSame(read([bytes.subarray(0, at), bytes.subarray(at)]), expected, `cut at ${at}`)
  })
}

t.test('reads any stream as the standard does, however it is cut', async (t) => {
  const end = fc.constantFrom('\n', '\r\n', '\r')
  const field = fc.constantFrom('data: ', 'data:', 'data', 'event: ', 'id:', ': ', 'datax: ', '', 'd', '\uFEFFdata: ')
  const value = fc.constantFrom('', ' ', '{"usage":1}', 'text', 'data: x', ':', '\u{1f600}')
  const line = fc.tuple(field, value, end).map((parts) => parts.join(''))
  const stream = fc.tuple(fc.constantFrom('', '\uFEFF'), fc.array(fc.oneof(line, end), { maxLength: 30 }))
    .map(([mark, lines]) => mark + lines.join(''))
  fc.assert(fc.property(stream, fc.array(fc.nat(), { maxLength: 6 }), (text, cuts) => {
    const bytes = Buffer.from(text)
    const offsets = [0, ...cuts.map((at) => at % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
    const pieces = offsets.slice(1).map((to, index) => bytes.subarray(offsets[index], to))
    return isDeepStrictEqual(read(pieces), reference(bytes))
  }), { numRuns: 5_000 })
  t.pass()
})

t.test('knows when it stands between events', async (t) => {
  const reader = new EventReader({ push: () => {} })
  const states = ['data: a\n', '\n', ': c\r', '\r', '\n', 'd'].map((text) => {
    reader.next(Buffer.from(text), 0)
    return [reader.idle, reader.afterReturn]
  })
  t.strictSame(states, [[false, false], [true, false], [false, true], [true, true], [true, false], [false, false]])
})

t.test('starts within a piece whose first events its caller passed by', async (t) => {
  const found: string[] = []
  const reader = new EventReader({ push: (chunk, from, to) => { found.push(chunk.toString('latin1', from, to)) } })
  reader.next(Buffer.from('data: a\r\n\r\n'), 0)
  const piece = Buffer.from('data: b\r\n\r\ndata: c\r\n\r\n')
  reader.skipped()
  t.equal(reader.next(piece, 11), 22)
  t.strictSame(found, ['a', 'c'])
})

t.test('takes no line end of an earlier piece for one of a piece whose first events its caller passed by', async (t) => {
  for (const first of [`data: ${'a'.repeat(30)}\r\n\r\n`, 'data: a\n\n']) {
    for (const end of ['\n\n', '\r\r']) {
      let found = ''
      const reader = new EventReader({ push: (chunk, from, to) => { found += chunk.toString('latin1', from, to) } })
      reader.next(Buffer.from(first), 0)
      found = ''
      reader.skipped()
      const piece = Buffer.from(`data: b\n\ndata: ${'c'.repeat(60)}${end}`)
      t.equal(reader.next(piece, 9), piece.length)
      t.equal(found, 'c'.repeat(60))
    }
  }
})
