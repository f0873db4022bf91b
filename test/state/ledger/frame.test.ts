import t from 'tap'
import { isFrame, readFrame, writeFrame } from '../../../plugins/state/ledger/frame.js'
import { record } from './ledger-host.js'

t.test('a frame holds one record, whatever is in it', async (t) => {
  const odd = { ...record('x'), model: 'a\u2028b\u2029c\nd"\u{1F600}' }
  const line = writeFrame(odd)
  t.equal(line.split(/[\n\u2028\u2029]/).length, 2)
  t.same(readFrame(line.slice(0, -1)), odd)
  const isWhole = (text: string): boolean => isFrame(Buffer.from(text), 0, Buffer.byteLength(text))
  t.equal(isWhole(line.slice(0, -1)), true)
  for (const broken of [
    '', '12345678 ', '00000000 ', line.slice(0, -2), line.replace('ci', 'cj').slice(0, -1), line.slice(0, -1).replace(' ', '\t'),
  ]) {
    t.equal(readFrame(broken), null, broken)
    t.equal(isWhole(broken), false, broken)
  }
})

t.test('a frame is read whatever digits its checksum has, and in no other spelling', async (t) => {
  const lines = Array.from({ length: 256 }, (_, at) => writeFrame(record(`r${at}`, 1)).slice(0, -1))
  for (const digit of '0123456789abcdef') t.ok(lines.some((line) => line.startsWith(digit)), `there is one that begins with ${digit}`)
  for (const line of lines) {
    const bytes = Buffer.from(line)
    t.ok(readFrame(line) !== null && isFrame(bytes, 0, bytes.length), line.slice(0, 8))
    // The same number with a digit that there is not: less than nothing, more than fifteen, or a letter between the digits and the others.
    for (const [pattern, carry, other] of [[/[0-9a-e][0-9a-f]/, 1, -16 + 48], [/[1-9a-f][0-9a-f]/, -1, 16 + 87], [/.a/, 0, 48]] as const) {
      const misspelt = line.replace(pattern, ([one = '', two = '']) =>
        (parseInt(one, 16) + carry).toString(16) + String.fromCharCode(parseInt(two, 16) + other))
      if (misspelt === line) continue
      t.notOk(isFrame(Buffer.from(misspelt), 0, bytes.length), misspelt.slice(0, 8))
      t.equal(readFrame(misspelt), null)
    }
  }
})
