import { appendFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ProgressBar } from '../../bin/progress-bar.js'
import { FileLedger } from '../../plugins/state/file-ledger.js'
import type { LedgerRecord } from '../../plugins/state/types.js'
import { yaml } from '../standalone/run.js'
import { command } from './terminal.js'

const leaves = { input: 1, cache_read: 10, cache_write_5m: 100, cache_write_1h: 200, cache_write: 300, tool_input: 4, output: 1_000, reasoning: 2_000 }
const total = 3_615
const plain = { key: 'a', group: 'chat', protocol: 'messages', model: 'm', outcome: 'ok', charged: total, late: [], ...leaves } as const

function record (day: string, more: Partial<LedgerRecord> = {}): LedgerRecord {
  return { ...plain, time: Date.parse(day), id: day, ...more }
}

/** A configuration and a ledger of a few records, in files of one record each. */
async function ledger (t: Test, records: readonly LedgerRecord[], engine = 'engine: lmdb'): Promise<{ file: string, folder: string }> {
  const data = t.testdir({})
  const [folder, file] = [join(data, 'ledger'), join(data, 'gateway.yaml')]
  const files = new FileLedger(folder, { maxFileBytes: 1 })
  for (const each of records) await files.append(each)
  await files.close()
  writeFileSync(file, yaml('http://127.0.0.1:9', []).replace('engine: memory', `${engine}, path: ${data}`))
  return { file, folder }
}

async function usage (file: string, ...args: string[]): Promise<string[]> {
  const { code, out, err } = await command('usage', '--config', file, ...args)
  t.equal(`${code} ${err}`, '0 ', args.join(' '))
  return out
}

const mixed = [
  record('2026-01-01'),
  record('2026-01-01T23:59:59Z', { key: 'b' }),
  record('2999-01-02', { model: 'n', outcome: 'client_abort', charged: 1 }),
  record('2999-01-02T12:00:00Z', { group: 'other', key: null, model: null, protocol: 'responses' }),
]

t.test('records as JSON lines, of a range and by filters', async (t) => {
  const { file } = await ledger(t, mixed)
  const ids = async (...args: string[]): Promise<string[]> => (await usage(file, ...args)).map((line) => JSON.parse(line).id)
  const [a, b, c, d] = mixed.map(({ id }) => id)
  t.same(await ids(), [a, b, c, d])
  t.same(await ids('--json'), [a, b, c, d], 'they are JSON anyway')
  t.same(JSON.parse((await usage(file))[0] ?? ''), mixed[0])
  // Whole files are passed over that ended before the range or began after it: these were written today.
  t.same(await ids('--from', '2026-01-02'), [c, d])
  t.same(await ids('--to', '2999-01-02T12:00:00Z'), [a, b, c])
  t.same(await ids('--key', 'a'), [a, c])
  t.same(await ids('--key', 'a', '--key', 'b', '--model', 'm'), [a, b])
  t.same(await ids('--group', 'other'), [d])
  t.same(await ids('--protocol', 'responses'), [d])
  t.same(await ids('--outcome', 'client_abort'), [c])
  t.same(await ids('--group', 'nobody'), [])
})

t.test('sums as a table', async (t) => {
  const { file } = await ledger(t, mixed)
  t.same(await usage(file, '--by', 'day', '--by', 'key'), [
    'day         key  requests  input  cache read  cache write  output  reasoning   total  charged',
    '2026-01-01  a           1      5          10          600   1,000      2,000   3,615    3,615',
    '2026-01-01  b           1      5          10          600   1,000      2,000   3,615    3,615',
    '2999-01-02  a           1      5          10          600   1,000      2,000   3,615        1',
    '2999-01-02  -           1      5          10          600   1,000      2,000   3,615    3,615',
    'all                     4     20          40        2,400   4,000      8,000  14,460   10,846',
  ])
  t.match((await usage(file, '--by', 'group', '--group', 'nobody')).join('\n'), /^group .*\nall +0 /)
})

t.test('a name that a caller made up for whoever reads the table has no power over the terminal', async (t) => {
  const model = '\u001b[2J\u009b1mm\nall 0\u202eo\u2028\ud800\u007f'
  const { file } = await ledger(t, [record('2026-01-01', { model })])
  const lines = await usage(file, '--by', 'model')
  t.equal(lines.length, 3)
  t.match(lines[1], /^\uFFFD\[2J\uFFFD1mm\uFFFDall 0\uFFFDo\uFFFD{3} /)
  t.match(lines.join(''), /^[\x20-\x7e\uFFFD]+$/)
})

t.test('sums as JSON', async (t) => {
  const { file } = await ledger(t, mixed)
  const by = async (...args: string[]): Promise<unknown[]> => (await usage(file, '--json', ...args)).map((line) => JSON.parse(line))
  const twice = Object.fromEntries(Object.entries(leaves).map(([leaf, value]) => [leaf, 2 * value]))
  t.strictSame(await by('--by', 'model'), [
    { model: 'm', requests: 2, ...twice, total: 2 * total, charged: 2 * total },
    { model: 'n', requests: 1, ...leaves, total, charged: 1 },
    { model: null, requests: 1, ...leaves, total, charged: total },
  ])
  t.match(await by('--by', 'group,day', '--from', '2026-01-02'), [{ group: 'chat', day: '2999-01-02' }, { group: 'other', day: '2999-01-02' }])
})

t.test('the ledger of Redis is read without Redis', async (t) => {
  const { file } = await ledger(t, mixed, 'engine: redis, url: "redis://127.0.0.1:9"')
  t.equal((await usage(file)).length, 4)
})

t.test('lines that are not whole are told and left out', async (t) => {
  const { file, folder } = await ledger(t, mixed)
  const name = join(folder, String(readdirSync(folder)[0]))
  appendFileSync(name, '0badc0de {"time":1}\n12')
  const { code, out, err } = await command('usage', '--config', file)
  t.match({ code, lines: out.length, err }, { code: 0, lines: 4, err: `${name}: 2 lines are not whole and were left out` })
})

t.test('what it cannot do is said', async (t) => {
  const at = (path: string): string => yaml('http://127.0.0.1:9', []).replace('engine: memory', `engine: lmdb, path: ${t.testdirName}${path}`)
  const cases: ReadonlyArray<readonly [args: string[], code: number, said: RegExp]> = [
    [[], 1, /there is no usage ledger at .*none\/ledger/],
    [['--from', 'then'], 2, /--from must be a date/],
    [['--by', 'hour'], 2, /--by must be group, key, model, day/],
    [['--by', 'constructor'], 2, /--by must be/],
    [['today'], 2, /Unexpected argument/],
  ]
  t.testdir({ 'gateway.yaml': at('/none'), 'broken.yaml': at(''), ledger: 'a file' })
  const file = join(t.testdirName, 'gateway.yaml')
  for (const [args, code, said] of cases) t.match(await command('usage', '--config', file, ...args), { code, out: [], err: said }, args.join(' '))
  t.match(await command('usage', '--config', join(t.testdirName, 'broken.yaml')), { code: 1, err: /ENOTDIR/ })
})

t.test('a bar for what takes long, on a terminal', async (t) => {
  const clock = { now: 0 }
  const drawn: string[] = []
  const bar = new ProgressBar((text) => drawn.push(text.replace('\r\u001b[K', '<')), () => clock.now)
  const at = (ms: number, done: number, total = 10): string | undefined => {
    clock.now = ms
    bar.update(done, total)
    return drawn.shift()
  }
  bar.clear()
  t.same(drawn, [], 'nothing to clear')
  t.equal(at(299, 1), undefined, 'not at once')
  t.equal(at(300, 2), '<[######........................] 20 %')
  t.equal(at(399, 3), undefined, 'not for each record')
  t.equal(at(400, 10), '<[##############################] 100 %')
  t.equal(at(500, 0, 0), '<[##############################] 100 %')
  bar.clear()
  bar.clear()
  t.same(drawn, ['<'])
  const silent = new ProgressBar(null)
  silent.update(1, 2)
  silent.clear()
})
