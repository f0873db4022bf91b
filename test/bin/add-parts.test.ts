/** Sums of the files of a ledger are those of a plain reading, however the files are cut, whoever adds them up, and whatever broke. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { partAdder, type SumQuestion } from '../../bin/sums/add-part.js'
import { addParts } from '../../bin/sums/add-parts.js'
import { Calendar } from '../../bin/sums/calendar.js'
import { readDimension } from '../../bin/sums/dimensions.js'
import { partsOf, readPart, type FilePart } from '../../bin/sums/file-parts.js'
import { keeps } from '../../bin/sums/wanted.js'
import { Sums } from '../../bin/sums/sums.js'
import { entryOf } from '../../bin/usage/reprice.js'
import { readFrame, writeFrame } from '../../plugins/state/ledger/frame.js'
import { filesOf } from '../../plugins/state/ledger/read.js'
import { runs } from '../helpers/runs.js'
import { anyRecord } from './any-record.js'

const folder = mkdtempSync(join(tmpdir(), 'llm-gateway-sums-'))
t.teardown(() => rmSync(folder, { recursive: true }))

const nothing = { group: [], key: [], model: [], protocol: [], outcome: [] }

function asked (by: readonly string[], from = 0, to = Infinity, wanted = {}): SumQuestion {
  const question = { from, to, wanted: { ...nothing, ...wanted } }
  return { by: by.map(readDimension), calendar: new Calendar('Asia/Kathmandu'), question }
}

/** As anybody would do it. */
function plainly (
  files: readonly string[], { by, calendar, question: { from, to, wanted } }: SumQuestion
): { sums: Sums, damaged: number } {
  const sums = new Sums()
  let damaged = 0
  for (const text of files) {
    const lines = text.split('\n')
    if (lines.at(-1) === '') lines.pop()
    for (const line of lines) {
      const record = readFrame(line)
      if (record === null) damaged += Number(line !== 'end')
      else if (record.time >= from && record.time < to && keeps(wanted)(record)) {
        sums.add(by.map(({ read }) => read(record, calendar)), entryOf(record))
      }
    }
  }
  return { sums, damaged }
}

async function written (files: readonly string[], partBytes: number): Promise<FilePart[]> {
  const path = mkdtempSync(join(folder, 'ledger-'))
  files.forEach((text, at) => writeFileSync(join(path, `${at}-1-a.ledger`), text))
  return partsOf(await filesOf(path, {}), partBytes)
}

const frame = anyRecord.map(writeFrame)
const line = fc.oneof(
  { weight: 6, arbitrary: frame },
  frame.map((text) => `${text.slice(0, -1)}\r\n`),
  fc.constantFrom('end\n', '\n', '\r\n', 'end\r\n', '00000000 {"time":1}\n', '\ud83d\ude00\n'),
  // Two that one write tore: what stands behind is whole.
  fc.tuple(frame, fc.nat(500)).map(([text, length]) => text.slice(0, length))
)
const file = fc.tuple(fc.array(line, { maxLength: 12 }), fc.nat(3)).map(([lines, torn]) => {
  const text = lines.join('')
  return torn === 0 ? text.slice(0, -1) : text
})

t.test('cut at any byte, in any order, with lines that are torn, empty or end otherwise', async (t) => {
  const by = fc.subarray(['group', 'key', 'model', 'protocol', 'day', 'month', 'label:model'])
  const parts = { files: fc.array(file, { maxLength: 3 }), by, partBytes: fc.integer({ min: 1, max: 700 }), backwards: fc.boolean() }
  await fc.assert(fc.asyncProperty(fc.record(parts), async ({ files, by, partBytes, backwards }) => {
    const question = asked(by, 1_000, 2 ** 30, { outcome: ['ok'] })
    const found = new Sums()
    let damaged = 0
    const add = partAdder(found, question, () => { damaged += 1 })
    const cut = await written(files, partBytes)
    for (const part of backwards ? cut.reverse() : cut) add(part)
    const wanted = plainly(files, question)
    t.strictSame([found.sorted, found.total(by.length), damaged], [wanted.sums.sorted, wanted.sums.total(by.length), wanted.damaged])
  }), { numRuns: runs(60) })
})

t.test('by one thread, and by several', async (t) => {
  const files = fc.sample(file, { numRuns: 12, seed: 7 })
  const question = asked(['model', 'month'])
  const { sums: wanted, damaged } = plainly(files, question)
  t.ok(wanted.sorted.length > 20 && damaged > 3)
  for (const [cores, partBytes] of [[1, 500], [4, 500], [4, 100_000]] as const) {
    const found = new Sums()
    let [broken, steps] = [0, 0]
    const parts = await written(files, partBytes)
    await addParts(parts, found, question, {
      onDamage: (_, lines) => { broken += lines }, onProgress: (done, total) => { steps = done / total },
    }, cores)
    t.strictSame([found.sorted, broken, steps], [wanted.sorted, damaged, 1], `${cores} cores, ${parts.length} parts`)
  }
})

const silent = { onDamage: () => {}, onProgress: () => {} }

t.test('a file that cannot be read is told, by whichever thread', async (t) => {
  for (const [path, code] of [[folder, 'EISDIR'], ['/dev/null/none', 'ENOTDIR']] as const) {
    const parts = Array.from({ length: 9 }, () => ({ path, from: 0, to: Infinity }))
    for (const cores of [1, 3]) await t.rejects(addParts(parts, new Sums(), asked([]), silent, cores), { code })
  }
})

t.test('a file that a gateway deletes meanwhile, as it is too old, keeps no report from the others', async (t) => {
  const files = fc.sample(file, { numRuns: 9, seed: 7 })
  const question = asked(['model'])
  const parts = await written(files, 100_000)
  rmSync(String(parts[4]?.path))
  const { sums: wanted } = plainly(files.filter((_, at) => at !== 4), question)
  for (const cores of [1, 3]) {
    const found = new Sums()
    await addParts(parts, found, question, silent, cores)
    t.strictSame(found.sorted, wanted.sorted)
  }
})

t.test('lines over blocks, one that is longer than some, and one without an end', async (t) => {
  const path = join(folder, 'long')
  const lines = [...Array<string>(15_000).fill('x'.repeat(99)), 'y'.repeat(2_500_000), 'z', 'torn']
  writeFileSync(path, lines.join('\n'))
  const came: string[] = []
  for (const part of partsOf([{ path, startedAt: 0, endedAt: 0, bytes: lines.join('\n').length }], 1_100_000)) {
    readPart(part, ({ bytes }, start, end) => { came.push(bytes.toString('latin1', start, end)) })
  }
  t.equal(came.length, lines.length)
  t.equal(came.join('\n') === lines.join('\n'), true)
})

t.test('lines that are written after a file was looked at belong to its last part', async (t) => {
  const path = join(folder, 'grown')
  writeFileSync(path, `${'x'.repeat(99)}\n`.repeat(10))
  const starts: number[] = []
  for (const part of partsOf([{ path, startedAt: 0, endedAt: 0, bytes: 350 }], 200)) readPart(part, (_, start) => { starts.push(start) })
  t.equal(starts.length, 10)
})
