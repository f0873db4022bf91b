import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { PriceError } from '../../plugins/costs/price-error.js'
import { PriceTable, rowAt, type PriceSources } from '../../plugins/costs/price-table.js'

const wrongFile = fileURLToPath(new URL('../fixtures/costs/wrong-prices.yaml', import.meta.url))

function problemsOf (sources: PriceSources): string[] {
  try {
    return [`no problem: ${new PriceTable(sources).currency}`]
  } catch (error) {
    if (!(error instanceof PriceError)) throw error
    t.equal(error.code, 'LLM_GATEWAY_PRICES')
    return error.message.split('\n')
  }
}

const folder = t.testdir({})

function file (name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

t.test('everything that is wrong with a file is told at once, each with its line and path', async (t) => {
  t.strictSame(problemsOf({ files: [wrongFile] }).map((line) => line.replace(`${wrongFile}:`, '')), [
    '3: models.negative.input: must not be negative',
    '4: models.nan.input: must be a number, not NaN',
    '5: models.infinite.input: must be a number, not Infinity',
    '6: models.huge.input: is above 10000, which nothing costs: is it in another unit?',
    '7: models.text.input: must be a number, not text',
    '8: models.nothing.input: must be a number, not null',
    '9: models.list.input: must be a number, not object',
    '10: models.digits.input: has more than 15 digits, and would be rounded',
    '11: models.unknown.inputs: is not known; did you mean input?',
    '12: models.number: must be an object of prices',
    '13: models.currency.currency: is EUR among prices in USD: a gateway counts in one currency',
    '14: models.step.above[0].inputTokens: must be a whole number of at least 1',
    '14: models.step.above[1]: must be an object with inputTokens and prices',
    '14: models.step.above[2].inclusive: must be true or false',
    '14: models.step.above[3].outputs: is not known; did you mean output?',
    '14: models.step.above: has 10 twice',
    '15: models.steps.above: must be a list',
    '16: models.each.each.pages: is not known',
    '16: models.each.each.search: must not be negative',
    '17: models.variants.tiers.flex.inputs: is not known; did you mean input?',
    '17: models.variants.tiers.batch: must be above 0',
    '17: models.variants.tiers.scale: must be an object of prices',
    '17: models.variants.speeds: must be an object',
    '17: models.variants.regions.us: is above 100, which nothing costs: is it in another unit?',
    '17: models.variants.regions.US: is there in other letters, too',
    '18: models.tools.tools: must be an object of prices',
    '19: models.dates.from: must be a date such as 2027-01-01 or 2027-01-01T00:00:00Z',
    '19: models.dates.until: must be a date such as 2027-01-01 or 2027-01-01T00:00:00Z',
    '20: models.order.until: must be after from',
    '21: models.overlap[1]: holds at a time when another of its rows does',
    '21: models.overlap[2]: holds at a time when another of its rows does',
  ].map((line) => line.replace(/^(\d+): /, '$1: ')))
})

t.test('a wrong name in a row of a list is told with what was probably meant', async (t) => {
  const path = file('meant.yaml', 'models:\n  m: { inptu: 1, each: { serach: 1 }, tools: { outptu: 1 } }\n')
  t.strictSame(problemsOf({ files: [path] }), [
    `${path}:2: models.m.inptu: is not known; did you mean input?`,
    `${path}:2: models.m.each.serach: is not known; did you mean search?`,
    `${path}:2: models.m.tools.outptu: is not known; did you mean output?`,
  ])
})

t.test('what nothing costs is more in a currency with small units', async (t) => {
  const problems = (currency: string, prices: object): string[] => problemsOf({ currency, models: { m: prices } })
  for (const currency of ['USD', 'EUR']) {
    t.match(problems(currency, { input: 10_001 }), [/m\.input: is above 10000, which/])
    t.match(problems(currency, { each: { search: 1_001 } }), [/m\.each\.search: is above 1000, which/])
  }
  for (const currency of ['JPY', 'KRW', 'VND', 'IDR']) {
    const flex = { output: 7_500_000.5, above: [{ inputTokens: 1, input: 20_000 }] }
    const row = { input: 15_000_000, tiers: { flex }, tools: { output: 11_000 }, each: { image: 5_000 } }
    t.strictSame(problems(currency, row), [`no problem: ${currency}`])
    t.match(problems(currency, { input: 1e11 }), [/m\.input: is above 10000000000, which/])
  }
})

t.test('wrong lists as a whole', async (t) => {
  const cases: ReadonlyArray<readonly [string, string, string]> = [
    [
      'a.yaml',
      'models: [\n',
      ':2:1: not valid YAML or JSON: the indentation does not fit what stands around it, or a bracket is not closed',
    ],
    ['b.json', '{ "models": { "a": { "input": 1 }, } ', ':1:38: not valid YAML or JSON: something is missing here'],
    ['e.yaml', 'models:\n  a: *b\n', ':2:6: not valid YAML or JSON: an alias (* and a name) that names nothing: put a text'],
    ['c.yaml', 'models: {}\nmodels: {}\n', ':2:1: not valid YAML or JSON: the same name stands twice: models'],
    ['s.yaml', 'models:\n"models": {}\n', ':2:1: not valid YAML or JSON: the same name stands twice: models'],
    ['t.yaml', 'models: &m m\n*m : 1\n*m : 1\n', ':1: m: is not known'],
    ['c.json', '{ "models": { "a": { "input": 1 },\n "b": { "above": [{ "input": 1, "input": 2 }] } } }',
      ':2: models.b.above[0].input: the same name stands twice'],
    ['d.yaml', '- 1\n', ':1: must be an object'],
    ['e.json', '{ "gpt": { "price": 1 } }', ':1: is no price list'],
    ['m.yaml', 'models: [gpt-5]\n', ':1: models: must be an object of models'],
    ['o.yaml', 'models:\n  a: {}\n', ':2: models.a: has no prices'],
    ['p.yaml', 'models:\n  a: { currency: USD }\n', ':2: models.a: has no prices'],
    ['q.yaml', 'models:\n  a: []\n', ':2: models.a: has no prices'],
    ['n.yaml', 'currency: USD\nmodels:\n', ':2: models: must be an object of models'],
    ['r.yaml', 'models:\n  a: { input: 1 }\n  gpt-?: { input: 1 }\n', ':3: models.gpt-?: has a ? in its name: only * stands'],
    ['f.yaml', 'currency: EUR\nmodels: {}\n', ':1: currency: is EUR, and the gateway counts in USD'],
    ['g.yaml', 'currency: DOLLARS\nmodels: {}\n', ':1: currency: is not a currency of ISO 4217'],
    ['h.yaml', 'currencies: USD\nmodels: {}\n', ':1: currencies: is not known'],
    [
      'i.json',
      '{ "a": { "litellm_provider": "x", "input_cost_per_token": 2.5 },\n "b": 1 }',
      ':1: a.input_cost_per_token: is above 0.01, which nothing costs',
    ],
    [
      'j.json',
      '{ "a": { "litellm_provider": "x", "search_context_cost_per_query": {\n "search_context_size_low": -0.01 } } }',
      ':2: a.search_context_cost_per_query.search_context_size_low: must not be negative',
    ],
    [
      'k.json',
      '{ "a": { "litellm_provider": "x",\n "tiered_pricing": [{ "range": [0, 10],\n "input_cost_per_token": "2.5e-06" }] } }',
      ':3: a.tiered_pricing[0].input_cost_per_token: must be a number, not text',
    ],
    [
      'l.json',
      '{ "a": { "litellm_provider": "x",\n "tiered_pricing": [{ "range": 10 }, { "range": ["1"], "input_cost_per_token": 2e-06 }] } }',
      ':2: a.tiered_pricing[0]: must have a range that begins with a whole number of tokens',
    ],
  ]
  for (const [name, text, words] of cases) {
    const path = file(name, text)
    t.ok(problemsOf({ files: [path] })[0]?.startsWith(path + words.slice(0, 4)), `${name}: ${problemsOf({ files: [path] })[0]}`)
    t.ok(problemsOf({ files: [path] })[0]?.includes(words.slice(4)), `${name}: ${problemsOf({ files: [path] })[0]}`)
  }
  t.match(problemsOf({ files: ['/nowhere/prices.yaml'] }), [/^\/nowhere\/prices.yaml: cannot be read \(ENOENT\)$/])
  t.match(problemsOf({ currency: 'EUR', files: [fileURLToPath(new URL('../fixtures/costs/community.json', import.meta.url))] }), [
    /:1: is in USD, and the gateway counts in EUR$/,
  ])
  t.strictSame(problemsOf({ currency: 'XXL' }), ['prices.currency: is not a currency of ISO 4217'])
  t.strictSame(problemsOf({ models: { a: { input: -1 } } }), ['prices.models: a.input: must not be negative'])
  t.strictSame(problemsOf({ models: 5 }), ['prices.models: must be an object of models'])
})

t.test('which entry a name gets', async (t) => {
  const first = file('first.yaml', 'models: { both: { input: 1 }, gpt: { input: 1 }, only-first: { input: 1 } }')
  const second = file(
    'second.json', '{ "$schema": "x", "currency": "USD", "models": { "both": { "input": 2 }, "*.claude-*": { "input": 2 } } }'
  )
  const table = new PriceTable({
    files: [first, second], models: { 'gpt-5*': { input: 3 }, 'gpt-5-mini*': { input: 4 }, 'gpt-5': { input: 5 } },
  })
  const cases: ReadonlyArray<readonly [string, string | null, string | null]> = [
    ['both', 'both', second],
    ['only-first', 'only-first', first],
    ['gpt', 'gpt', first],
    ['gpt-5', 'gpt-5', 'prices.models'],
    ['gpt-5-2025-08-07', 'gpt-5', 'prices.models'],
    ['gpt-5-20250807', 'gpt-5', 'prices.models'],
    ['gpt-5@20250807', 'gpt-5', 'prices.models'],
    ['gpt-5-pro', 'gpt-5*', 'prices.models'],
    ['gpt-5-mini-2', 'gpt-5-mini*', 'prices.models'],
    ['us.claude-x', '*.claude-*', second],
    ['us-claude-x', null, null],
    ['vendor/gpt-5', null, null],
    ['ft:gpt-5:me::1', null, null],
    ['', null, null],
  ]
  for (const [name, key, place] of cases) {
    const entry = table.entry(name)
    t.strictSame([entry?.key ?? null, entry?.place ?? null], [key, place], name)
    t.equal(table.entry(name), entry, 'the same the second time')
  }
  for (let made = 0; made < 4_100; made += 1) table.entry(`made-up-${made}`)
  t.equal(table.entry('both')?.place, second, 'names that are made up push nothing out for good')
})

t.test('rows have their time, and a digest of what they say', async (t) => {
  const table = new PriceTable({
    models: {
      a: [{ input: 1, until: '2027-01-01' }, { input: 2, from: '2027-01-01', until: '2028-01-01T00:00:00+01:00' }],
      b: { input: 1, until: '2027-01-01' },
    },
  })
  const rows = table.entry('a')?.rows ?? []
  const at = (time: string): unknown => rowAt(rows, Date.parse(time))?.source
  t.strictSame(at('2026-12-31T23:59:59.999Z'), { input: 1, until: '2027-01-01' })
  t.match(at('2027-01-01T00:00:00Z'), { input: 2 })
  t.match(at('2027-12-31T22:59:59Z'), { input: 2 })
  t.equal(at('2027-12-31T23:00:00Z'), undefined)
  const [one, two] = rows
  const [same] = table.entry('b')?.rows ?? []
  if (one === undefined || two === undefined || same === undefined) throw new Error('rows are missing')
  t.match(table.digest(one), /^[0-9a-f]{16}$/)
  t.equal(table.digest(one), table.digest(same))
  t.equal(table.digest(one), table.digest(one))
  t.not(table.digest(one), table.digest(two))
})

t.test('a thousand models share one row by an alias', async (t) => {
  const names = Array.from({ length: 1_000 }, (_, index) => `  m${index}: *row\n`)
  const path = file('aliases.yaml', `models:\n  first: &row { input: 1 }\n${names.join('')}`)
  t.strictSame(problemsOf({ files: [path] }), ['no problem: USD'])
})

t.test('what is wrong behind an alias is told where the alias stands', async (t) => {
  const path = file('alias.yaml', 'models:\n  a: &a { input: -1 }\n  b: *a\n  c: [{ input: -1 }]\n')
  t.strictSame(problemsOf({ files: [path] }).map((line) => line.replace(`${path}:`, '')), [
    '2: models.a.input: must not be negative',
    '3: models.b.input: must not be negative',
    '4: models.c[0].input: must not be negative',
  ])
})
