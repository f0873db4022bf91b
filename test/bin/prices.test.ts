import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { FileLedger } from '../../plugins/state/ledger/file-ledger.js'
import type { LedgerRecord } from '../../plugins/state/types.js'
import { yaml } from '../standalone/run.js'
import { command } from './terminal.js'
import { noTokens } from '../metrics/requests.js'

const plain = {
  key: 'a',
  group: 'chat',
  protocol: 'messages',
  outcome: 'ok',
  charged: 0,
  late: [],
  ...noTokens,
  input: 1,
  output: 1,
} as const

function record (id: string, day: string, model: string | null, bill?: LedgerRecord['bill']): LedgerRecord {
  return { ...plain, id, model, time: Date.parse(day), ...bill && { bill } }
}

async function start (
  t: Test, more: string, records: readonly LedgerRecord[] = []
): Promise<(...args: string[]) => ReturnType<typeof command>> {
  const data = t.testdir({
    'list.yaml': 'models: { gpt-5: [{ input: 1, until: 2020-01-01 }, { input: 2, output: 3, from: 2020-01-01 }], past: { input: 1, ' +
      'until: 2020-01-01 }, part: { input: 1 } }',
    'wrong.yaml': 'models:\n  a:\n    input: -1\n',
  })
  if (records.length > 0) {
    const ledger = new FileLedger(join(data, 'ledger'))
    for (const each of records) await ledger.append(each)
    await ledger.close()
  }
  const file = join(data, 'gateway.yaml')
  writeFileSync(file, yaml('http://127.0.0.1:9', [], more).replace('engine: memory', `engine: lmdb, path: ${data}`))
  return async (...args) => await command(...args, '--config', file)
}

t.test('the entry of a model, and why it is that one', async (t) => {
  const run = await start(t, 'prices: { files: [list.yaml], models: { "gpt-*": { input: 3 } } }')
  const glob = await run('prices', 'show', 'gpt-6')
  t.match(glob, { code: 0, err: 'gpt-6 has the entry gpt-* of prices.models, by its glob' })
  t.match(glob.out.map((line) => JSON.parse(line)), [{
    model: 'gpt-6', entry: 'gpt-*', place: 'prices.models', currency: 'USD', price: /^[0-9a-f]{16}$/, now: true, row: { input: 3 },
  }])
  const other = await start(t, 'prices: { files: [list.yaml] }')
  const dated = await other('prices', 'show', 'gpt-5-2025-08-07')
  t.match(dated, { code: 0, err: /^gpt-5-2025-08-07 has the entry gpt-5 of .*list\.yaml, by its name without its date$/ })
  t.match(dated.out.map((line) => JSON.parse(line)), [{ now: false }, { now: true, row: { input: 2 } }])
  t.match(await other('prices', 'show', 'past'), { code: 0, err: /by its name, and none of its rows holds now$/ })
  t.match(await other('prices', 'show', 'unheard-of'), { code: 1, err: /^llm-gateway: unheard-of has no price/ })
})

t.test('models of the ledger without a price, or without a part of it', async (t) => {
  const run = await start(t, 'prices: { files: [list.yaml] }', [
    record('1', '2026-01-01', 'gpt-5'),
    record('2', '2026-01-02', 'z'),
    record('9', '2026-01-02', 'part'),
    record('3', '2026-01-03', 'a', { startedAt: Date.parse('2026-01-03'), model: 'gpt-5-2025-08-07' }),
    { ...record('7', '2026-01-03', 'ours'), upstreamModel: 'gpt-5' },
    record('4', '2026-01-04', 'z', { startedAt: Date.parse('2026-01-04') }),
    record('5', '2026-01-05', 'past'),
    record('6', '2026-01-06', null),
    { ...record('8', '2026-01-06', 'misspelt'), input: 0, output: 0, outcome: 'client_error' },
  ])
  t.matchOnly(await run('prices', 'check'), {
    code: 1,
    err: '',
    out: ['{"model":"null","requests":1}', '{"model":"part","requests":1}', '{"model":"past","requests":1}', '{"model":"z","requests":2}'],
  })
  t.matchOnly(await run('prices', 'check', '--local', '--from', '2026-01-05'), {
    code: 1, err: '', out: ['{"model":"null","requests":1}', '{"model":"past","requests":1}'],
  })
  t.matchOnly(await run('prices', 'check', '--from', '2026-01-06', '--timezone', 'Europe/Berlin'), {
    code: 1, err: '', out: ['{"model":"null","requests":1}'],
  }, 'from midnight there')
  const none = { code: 0, out: [], err: 'every request of the ledger has a price' }
  t.matchOnly(await run('prices', 'check', '--from', '2026-01-06', '--timezone', 'America/New_York'), none, 'five hours later')
  t.match(await run('prices', 'check', '--timezone', 'Moon'), { code: 2, err: /--timezone must be an IANA time zone/ })
  t.matchOnly(await run('prices', 'check', '--from', '2026-01-03', '--to', '2026-01-04'), none)
})

t.test('the prices commands say what is wrong with the lists and with their arguments', async (t) => {
  t.match(await (await start(t, ''))('prices', 'show', 'a'), { code: 1, err: /names no prices$/ })
  const run = await start(t, 'prices: { files: [wrong.yaml, gone.yaml] }')
  for (const args of [['prices', 'show', 'a'], ['check']]) {
    t.match(await run(...args), {
      code: 1, err: /wrong\.yaml:3: models\.a\.input: must not be negative\n.*gone\.yaml: cannot be read \(ENOENT\)$/,
    })
  }
  const plain = await start(t, 'prices: {}')
  t.match(await plain('prices', 'list'), { code: 2, err: /prices takes show or check/ })
  t.match(await plain('prices', 'show'), { code: 2, err: /prices show takes one model/ })
  t.match(await plain('prices', 'check'), { code: 1, err: /there is no usage ledger/ })
  t.match(await plain('prices', 'check', 'model'), { code: 2, err: /Unexpected argument 'model'/ })
  t.match(await plain('prices', 'check', '--from', '2027-01-02', '--to', '2027-01-01'), { code: 2, err: /--to must be after --from/ })
  t.match(await plain('prices', 'show', 'model', '--from', '2027-01-01'), { code: 2, err: /Unknown option '--from'/ })
})
