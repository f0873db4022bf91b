import { appendFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ProgressBar } from '../../bin/progress-bar.js'
import { FileLedger } from '../../plugins/state/ledger/file-ledger.js'
import type { LedgerRecord } from '../../plugins/state/types.js'
import { yaml } from '../standalone/run.js'
import { command } from './terminal.js'

const leaves = {
  input: 1, cache_read: 10, cache_write_5m: 100, cache_write_1h: 200, cache_write: 300, tool_input: 4, output: 1_000, reasoning: 2_000,
}
const total = 3_615
const plain = { key: 'a', group: 'chat', protocol: 'messages', model: 'm', outcome: 'ok', charged: total, late: [], ...leaves } as const

function record (day: string, more: Partial<LedgerRecord> = {}): LedgerRecord {
  return { ...plain, time: Date.parse(day), id: day, ...more }
}

/** A configuration and a ledger of a few records, in one file, which one thread reads, or in files of one record each. */
async function ledger (
  t: Test, records: readonly LedgerRecord[], { engine = 'engine: lmdb', isOneFile = false } = {}
): Promise<{ file: string, folder: string }> {
  const data = t.testdir({})
  const [folder, file] = [join(data, 'ledger'), join(data, 'gateway.yaml')]
  const files = new FileLedger(folder, isOneFile ? {} : { maxFileBytes: 1 })
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
})

t.test('usage --by shows sums as a table', async (t) => {
  const { file } = await ledger(t, mixed, { isOneFile: true })
  t.same(await usage(file, '--by', 'day', '--by', 'key'), [
    'day         key  requests  input  cache read  cache write  output  reasoning   total  charged  cost  unpriced',
    '2026-01-01  a           1      5          10          600   1,000      2,000   3,615    3,615     -         0',
    '2026-01-01  b           1      5          10          600   1,000      2,000   3,615    3,615     -         0',
    '2999-01-02  -           1      5          10          600   1,000      2,000   3,615    3,615     -         0',
    '2999-01-02  a           1      5          10          600   1,000      2,000   3,615        1     -         0',
    'all                     4     20          40        2,400   4,000      8,000  14,460   10,846     -         0',
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

t.test('sums leave out what a crash tore off, and say so', async (t) => {
  const { file, folder } = await ledger(t, mixed)
  const [first = ''] = readdirSync(folder)
  appendFileSync(join(folder, first), 'deadbeef {"torn')
  const { code, out, err } = await command('usage', '--config', file, '--by', 'group')
  t.equal(code, 0)
  t.match(out.at(-1), /^all +4 /)
  t.match(err, /: 1 lines are not whole and were left out/)
})

t.test('usage --by --json shows one sum a line', async (t) => {
  const { file } = await ledger(t, mixed, { isOneFile: true })
  const by = async (...args: string[]): Promise<unknown[]> => (await usage(file, '--json', ...args)).map((line) => JSON.parse(line))
  const twice = Object.fromEntries(Object.entries(leaves).map(([leaf, value]) => [leaf, 2 * value]))
  t.strictSame(await by('--by', 'model'), [
    { model: null, requests: 1, ...leaves, total, charged: total, cost: {}, unpriced: 0 },
    { model: 'm', requests: 2, ...twice, total: 2 * total, charged: 2 * total, cost: {}, unpriced: 0 },
    { model: 'n', requests: 1, ...leaves, total, charged: 1, cost: {}, unpriced: 0 },
  ])
  t.match(await by('--by', 'group,day', '--from', '2026-01-02'), [
    { group: 'chat', day: '2999-01-02' }, { group: 'other', day: '2999-01-02' },
  ])
})

const paid = [
  record('2026-03-28T23:30:00Z', { labels: { team: 'search' }, cost: '0.1', currency: 'USD', costParts: { input: '0.1' } }),
  record('2026-03-29T00:30:00Z', { labels: { team: 'search' }, cost: '0.2', currency: 'USD', costParts: { input: '0.2' } }),
  record('2026-03-31T22:30:00Z', { labels: { team: 'a "b", c' }, cost: null, currency: 'USD', costParts: { input: null } }),
  record('2026-04-01T00:00:00Z', {
    model: '=cmd', cost: '0.000000005', currency: 'EUR', costParts: { input: '0.000000005', output: null },
  }),
  record('2026-04-02T00:00:00Z', { cost: '1', currency: 'USD', costParts: { input: '1' } }),
]

t.test('a label may be called as what every object has', async (t) => {
  const { file } = await ledger(t, paid, { isOneFile: true })
  for (const name of ['constructor', '__proto__']) {
    const [line = ''] = await usage(file, '--json', '--by', `label:${name}`)
    t.match(JSON.parse(line), { [`label:${name}`]: null, requests: 5 })
    await t.resolves(usage(file, '--by', `label:${name}`))
  }
})

t.test('what it cost, to the last digit, by label, and by days and months of a time zone', async (t) => {
  const { file } = await ledger(t, paid, { isOneFile: true })
  const by = async (...args: string[]): Promise<unknown[]> => (await usage(file, '--json', ...args)).map((line) => JSON.parse(line))
  t.match(await by('--by', 'label:team'), [
    { 'label:team': null, requests: 2, cost: { EUR: '0.000000005', USD: '1' }, unpriced: 1 },
    { 'label:team': 'a "b", c', requests: 1, cost: {}, unpriced: 1 },
    { 'label:team': 'search', requests: 2, cost: { USD: '0.3' }, unpriced: 0 },
  ])
  t.match(await by('--by', 'day', '--timezone', 'Europe/Berlin'), [
    { day: '2026-03-29', requests: 2 }, { day: '2026-04-01', requests: 2 }, { day: '2026-04-02', requests: 1 },
  ])
  t.match(await by('--by', 'month,protocol', '--timezone', 'Asia/Kathmandu'), [
    { month: '2026-03', protocol: 'messages', requests: 2 }, { month: '2026-04', requests: 3 },
  ])
  const from = async (date: string, zone: string): Promise<number> => (await usage(file, '--from', date, '--timezone', zone)).length
  t.equal(await from('2026-03-29', 'UTC'), 4)
  t.equal(await from('2026-03-29', 'Europe/Berlin'), 5, 'the day begins before the clock is changed')
  t.equal(await from('2026-03-30', 'Europe/Berlin'), 3)
  t.equal(await from('2026-03-29T00:00:00Z', 'Europe/Berlin'), 4)
  t.match((await usage(file, '--by', 'month')).at(-1), /^all .* 0\.000000005 EUR \+ 1\.3 USD +2$/)
})

t.test('usage --by --csv shows sums for spreadsheets', async (t) => {
  const { file } = await ledger(t, paid, { isOneFile: true })
  const rest = '1,10,100,200,300,4,1000,2000'
  t.strictSame(await usage(file, '--csv', '--by', 'model,label:team', '--from', '2026-03-31'), [
    'model,label:team,requests,input,cache_read,cache_write_5m,cache_write_1h,cache_write,tool_input,output,reasoning,' +
      'total,charged,cost,currency,unpriced',
    `'=cmd,,1,${rest},3615,3615,0.000000005,EUR,1`,
    `m,,1,${rest},3615,3615,1,USD,0`,
    `m,"a ""b"", c",1,${rest},3615,3615,,,1`,
  ])
  t.match((await usage(file, '--csv', '--by', 'label:a"b'))[0], /^"label:a""b",requests,/)
  const lines = await usage(file, '--csv', '--by', 'key', '--from', '2026-04-01')
  t.match(
    lines.slice(1),
    [/^a,2,2,20,200,400,600,8,2000,4000,7230,7230,0\.000000005,EUR,1$/, /^a,,,,,,,,,,,,1,USD,$/],
    'one line for each currency'
  )
})

t.test('names in CSV and JSON, whatever is in them', async (t) => {
  const models = ['two\nlines', '+1', '-1', '@x', '\tx', '＝1', '\n=1', '\u001b]52;c;eA==\u0007', 'a=b', '"', 'plain']
  const { file } = await ledger(t, models.map((model, at) => record(`2026-04-${at + 10}`, { model })), { isOneFile: true })
  t.strictSame(
    (await usage(file, '--csv', '--by', 'model,day')).slice(1).map((line) => line.replace(/,2026.*$/, '')).sort(),
    ['two�lines', "'+1", "'-1", "'@x", '�x', "'＝1", '�=1', '�]52;c;eA==�', 'a=b', '""""', 'plain'].sort()
  )
  t.strictSame(
    (await usage(file, '--json', '--by', 'model')).map((line) => JSON.parse(line).model), [...models].sort(), 'as they are, for programs'
  )
})

t.test('what it would have cost with other prices', async (t) => {
  const usd = { cost: '0.5', currency: 'USD', costParts: { input: '0.5' } } as const
  const none = { cache_read: 0, cache_write_5m: 0, cache_write_1h: 0, cache_write: 0, tool_input: 0, output: 0, reasoning: 0 }
  const image = { direction: 'output', modality: 'image', tokens: 10 } as const
  const seen = { direction: 'input', modality: 'image', tokens: 40 } as const
  const { file, folder } = await ledger(t, [
    record('2026-05-01', {
      ...usd, ...none, input: 1_000, bill: { startedAt: Date.parse('2026-04-30'), model: 'm-2026-01-01', factor: '1.1' },
    }),
    record('2026-05-02', {
      ...usd, ...none, input: 1_000, serviceTier: 'flex', bill: { startedAt: Date.parse('2026-05-02'), factor: 'none' },
    }),
    record('2026-05-03', { ...none, input: 0, model: 'unheard-of' }),
    record('2026-05-04', { ...none, input: 5, model: 'unheard-of' }),
    record('2026-05-05', {
      ...none,
      input: 3,
      output: 20,
      bill: {
        startedAt: Date.parse('2026-05-05'),
        modalities: [image, { ...image }],
        counts: { search: 2 },
        speed: 'standard',
        region: 'standard',
        tools: { usage: { ...none, input: 0, output: 10 }, modalities: [image] },
      },
    }),
    record('2026-05-06', { ...none, input: 1_000, model: 'ours', upstreamModel: 'm', bill: { startedAt: Date.parse('2026-05-06') } }),
    record('2026-05-07', {
      ...none,
      input: 1,
      model: 'plain',
      bill: { startedAt: Date.parse('2026-05-07'), tools: { usage: { ...none, input: 2, output: 0 }, modalities: [], model: 'm' } },
    }),
    record('2026-05-08', {
      ...none,
      input: 55,
      cache_read: 25,
      model: 'seen',
      bill: {
        startedAt: Date.parse('2026-05-08'),
        modalities: [seen, { ...seen, cached: 25 }],
        tools: { usage: { ...none, input: 15, cache_read: 25, output: 0 }, modalities: [{ ...seen, cached: 25 }] },
      },
    }),
  ])
  const list = join(folder, '..', 'other.yaml')
  writeFileSync(
    list,
    'models: { seen: { input: 1, input_image: 10, tools: { input_image: 8, cache_read_image: 2 } }, plain: { input: 4 }, ' +
      'm: [{ input: 100, until: 2026-05-01 }, { input: 1, output: 2, output_image: 3, tiers: { flex: 0.5 }, ' +
      'each: { search: 1 }, tools: { output_image: 7 }, from: 2026-05-01 }] }'
  )
  const lines = async (...args: string[]): Promise<string[]> => await usage(file, 'reprice', '--prices', list, ...args)
  // 0.11; 0.0005; nothing; without a price; 3 x 1 + 10 x 3 + 10 x 7 of a million, and 2 searches; 40 x 10 + 15 x 8 + 25 x 2
  t.match((await lines('--json', '--by', 'day')).map((line) => JSON.parse(line)), [
    { cost: { USD: '0.5' }, repriced: { USD: '0.11' }, unpriced: 0 },
    { cost: { USD: '0.5' }, repriced: { USD: '0.0005' }, unpriced: 0 },
    { cost: {}, repriced: {}, unpriced: 0 },
    { cost: {}, repriced: {}, unpriced: 1 },
    { cost: {}, repriced: { USD: '2.000103' }, unpriced: 0 },
    { cost: {}, repriced: { USD: '0.001' }, unpriced: 0 },
    { cost: {}, repriced: { USD: '0.000006' }, unpriced: 0 },
    { cost: {}, repriced: { USD: '0.00057' }, unpriced: 0 },
  ])
  const [head, all] = await lines()
  t.match(head, /cost +repriced +unpriced$/)
  t.match(all, / 1 USD +2\.112179 USD +1$/)
  t.match((await lines('--csv', '--by', 'model'))[1], /,1,2\.110603,USD,0$/)
  t.match((await lines('--by', 'key', '--group', 'nobody')).at(-1), /^all +0 .* - +- +0$/)
})

const perToken = {
  litellm_provider: 'x',
  input_cost_per_token: 0.000001,
  input_cost_per_token_above_200k_tokens: 0.000002,
  input_cost_per_token_flex: 0.0000005,
  cache_read_input_token_cost: 0.0000001,
  cache_read_input_token_cost_above_200k_tokens: 0.0000002,
  output_cost_per_token: 0.000004,
  output_cost_per_token_above_200k_tokens: 0.000006,
}

t.test('what it would have cost by the community\'s list: steps with cached tokens, tiers, what is free, edges of the time', async (t) => {
  const none = { cache_write_5m: 0, cache_write_1h: 0, cache_write: 0, tool_input: 0, output: 0, reasoning: 0 }
  const of = (day: string, input: number, cached: number, more: Partial<LedgerRecord> = {}): LedgerRecord =>
    record(day, { ...none, input, cache_read: cached, ...more })
  const { file, folder } = await ledger(t, [
    of('2026-05-31T23:59:59.999Z', 1, 0, { model: 'free' }),
    of('2026-06-01', 140_000, 60_000, { model: 'm-2026-01-01' }),
    of('2026-06-01T00:00:00.001Z', 140_001, 60_000, { output: 10 }),
    of('2026-06-02', 1_000, 0, { serviceTier: 'flex' }),
    of('2026-06-03', 1_000, 0, { serviceTier: 'priority', cost: '7', currency: 'EUR', costParts: { input: '7' } }),
    of('2026-06-04', 5, 0, { model: 'free' }),
    of('2026-06-05', 0, 0, { model: 'pictures', bill: { startedAt: Date.parse('2026-06-05'), counts: { image: 3 } } }),
  ])
  const list = join(folder, '..', 'model_prices_and_context_window.json')
  writeFileSync(list, JSON.stringify({
    m: perToken,
    free: { litellm_provider: 'x', input_cost_per_token: 0 },
    pictures: { litellm_provider: 'x', mode: 'image_generation', output_cost_per_image: 0.04 },
  }))
  const june = ['--from', '2026-06-01', '--to', '2026-06-06']
  const lines = await usage(file, 'reprice', '--prices', list, '--by', 'day,model', ...june, '--json')
  t.match(lines.map((line) => JSON.parse(line)), [
    // 140,001 x 2 + 60,000 x 0.2 + 10 x 6 of a million
    { day: '2026-06-01', model: 'm', cost: {}, repriced: { USD: '0.292062' }, unpriced: 0 },
    // 140,000 x 1 + 60,000 x 0.1
    { day: '2026-06-01', model: 'm-2026-01-01', repriced: { USD: '0.146' } },
    { day: '2026-06-02', repriced: { USD: '0.0005' }, unpriced: 0 },
    { day: '2026-06-03', cost: { EUR: '7' }, repriced: {}, unpriced: 1 },
    { day: '2026-06-04', model: 'free', repriced: { USD: '0' }, unpriced: 0 },
    { day: '2026-06-05', model: 'pictures', repriced: { USD: '0.12' }, unpriced: 0 },
  ])
  t.equal(lines.length, 6)
  const euros = join(folder, '..', 'euros.yaml')
  writeFileSync(euros, 'currency: EUR\nmodels: { m: { input: 1 } }')
  t.match(await command('usage', 'reprice', '--config', file, '--prices', euros), {
    code: 1, out: [], err: /euros\.yaml:1: currency: is EUR, and the gateway counts in USD/,
  })
})

t.test('the ledger of Redis is read without Redis', async (t) => {
  const { file } = await ledger(t, mixed, { engine: 'engine: redis, url: "redis://127.0.0.1:9"', isOneFile: true })
  t.equal((await usage(file)).length, 4)
})

t.test('where no record is, that is said beside the empty result', async (t) => {
  const { file } = await ledger(t, mixed)
  t.same(await command('usage', '--config', file, '--group', 'nobody'), {
    code: 0, out: [], err: 'the ledger has no record, or none that matches',
  })
})

t.test('lines that are not whole are told and left out', async (t) => {
  const { file, folder } = await ledger(t, mixed)
  const name = join(folder, String(readdirSync(folder)[0]))
  appendFileSync(name, '0badc0de {"time":1}\n12')
  const { code, out, err } = await command('usage', '--config', file)
  t.match({ code, lines: out.length, err }, { code: 0, lines: 4, err: `${name}: 2 lines are not whole and were left out` })
})

t.test('what it cannot do is said', async (t) => {
  const at = (path: string): string => yaml('http://127.0.0.1:9', []).replace(
    'engine: memory', `engine: lmdb, path: ${t.testdirName}${path}`
  )
  const cases: ReadonlyArray<readonly [args: string[], code: number, said: RegExp]> = [
    [[], 1, /there is no usage ledger at .*none\/ledger/],
    [['--by', 'key'], 1, /there is no usage ledger at .*none\/ledger/],
    [['--from', 'then'], 2, /--from must be a date/],
    [['--by', 'hour'], 2, /--by must be group, key, model, protocol, day, month, label:NAME/],
    [['--by', 'constructor'], 2, /--by must be/],
    [['--by', 'label:'], 2, /--by must be/],
    [['today'], 2, /usage takes options, or reprice/],
    [['reprice'], 2, /usage reprice needs --prices FILE/],
    [['reprice', 'again', '--prices', 'a'], 2, /usage takes options, or reprice/],
    [['--prices', 'a'], 2, /usage takes options, or reprice/],
    [['reprice', '--prices', '/nowhere'], 1, /nowhere: cannot be read/],
    [['--timezone', 'Moon/Base'], 2, /--timezone must be an IANA time zone/],
    [['--timezone=-03:00'], 2, /--timezone must be an IANA time zone such as Europe\/Berlin, not -03:00/],
    [['--json', '--csv'], 2, /--csv and --json exclude each other/],
    [['--csv'], 2, /--csv is of sums: say --by, too/],
    [['--from', '2027-02-29'], 2, /--from must be a date such as .*, not 2027-02-29/],
    [['--from', '2027-02-02', '--to', '2027-02-01'], 2, /--to must be after --from/],
    [['--from', '2027-02-02', '--to', '2027-02-02'], 2, /--to must be after --from/],
    [['--outcome', 'success'], 2, /--outcome must be one of ok, .*truncated, not success/],
    [['--protocol', 'message'], 2, /--protocol must be one of chat_completions, .*, not message; did you mean messages\?/],
  ]
  t.testdir({ 'gateway.yaml': at('/none'), 'broken.yaml': at(''), ledger: 'a file' })
  const file = join(t.testdirName, 'gateway.yaml')
  for (const [args, code, said] of cases) {
    t.matchOnly(await command('usage', '--config', file, ...args), { code, out: [], err: said }, args.join(' '))
  }
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
