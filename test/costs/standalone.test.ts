/** Prices in a gateway of its own: read at start, and again when they change. */
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { parse } from 'yaml'
import { Place } from '../../plugins/costs/place.js'
import { readRows } from '../../plugins/costs/read-row.js'
import { ConfigError } from '../../plugins/standalone/config-error.js'
import { parseConfig } from '../../plugins/standalone/config.js'
import { watchConfig } from '../../plugins/standalone/watch.js'
import { Signal, startUpstream } from '../helpers/upstream.js'
import { chat, start, yaml } from '../standalone/run.js'

const reply = {
  id: 'c', model: 'm', choices: [{ finish_reason: 'stop' }], usage: { prompt_tokens: 1000, completion_tokens: 0, total_tokens: 1000 },
}

/** A machine that is busy with other tests sheds nothing. */
const calm = 'overload: { maxLoopDelayMs: 0 }'

t.test('a changed price list counts from the next reload on, and a wrong one is refused', async (t) => {
  const upstream = await startUpstream(t)
  const running = await start(t, yaml(upstream.url, ['key']))
  const list = join(dirname(running.file), 'prices.yaml')
  const cost = async (): Promise<string | null> => {
    upstream.queue({ headers: { 'content-type': 'application/json' }, body: reply })
    const { headers } = await chat(running.origin, 'key')
    return headers.get('x-llm-gateway-cost')
  }
  writeFileSync(list, 'models: { m: { input: 1 } }')
  running.write(yaml(upstream.url, ['key'], `prices: { files: [prices.yaml] }\ncosts: { header: true }\n${calm}`))
  t.equal(await running.gateway.reload(), true)
  t.strictSame(running.gateway.priceFiles, [list])
  t.equal(await cost(), '0.001')
  writeFileSync(list, 'models: { m: { input: 2 } }')
  t.equal(await cost(), '0.001')
  t.equal(await running.gateway.reload(), true)
  t.equal(await cost(), '0.002')
  writeFileSync(list, 'models:\n  m: { input: two }')
  t.equal(await running.gateway.reload(), false)
  t.match(running.log(), /prices\.yaml:2: models\.m\.input: must be a number, not text/)
  t.equal(await cost(), '0.002')
})

t.test('a request keeps the prices that it began with, whatever is reloaded in its middle', async (t) => {
  const upstream = await startUpstream(t)
  const prices = (input: number): string => yaml(
    upstream.url, ['key'], `prices: { models: { m: { input: ${input} } } }\ncosts: { header: true }\n${calm}`
  )
  const running = await start(t, prices(1))
  let goOn = (): void => {}
  const reloaded = new Promise<void>((resolve) => { goOn = resolve })
  upstream.queue({ headers: { 'content-type': 'application/json' }, body: reply, before: async () => await reloaded })
  const first = chat(running.origin, 'key')
  await upstream.requests.next()
  running.write(prices(2))
  t.equal(await running.gateway.reload(), true)
  upstream.queue({ headers: { 'content-type': 'application/json' }, body: reply })
  t.equal((await chat(running.origin, 'key')).headers.get('x-llm-gateway-cost'), '0.002')
  goOn()
  t.equal((await first).headers.get('x-llm-gateway-cost'), '0.001')
})

t.test('a changed price counts against a budget from the next request on, and one that is overspent refuses', async (t) => {
  const upstream = await startUpstream(t)
  const config = (output: number): string => [
    `upstreams: { main: { url: "${upstream.url}", credential: upstream-secret } }`,
    'groups: { chat: { protocols: [chat_completions], upstream: main, limits: { budgets: [{ cost: 0.01, period: total }] } } }',
    'keys: [{ id: key, group: chat, secret: key }]',
    'state: { engine: memory }',
    `prices: { models: { m: { input: 0, output: ${output} } } }`,
    calm,
  ].join('\n')
  const running = await start(t, config(1))
  const ask = async (tokens: number): Promise<string> => {
    const usage = { prompt_tokens: 0, completion_tokens: tokens, total_tokens: tokens }
    upstream.queue({ headers: { 'content-type': 'application/json' }, body: { ...reply, usage } })
    const answer = await chat(running.origin, 'key', { max_tokens: 1_000 })
    const json: { error?: { code?: string } } = JSON.parse(await answer.text())
    if (answer.status !== 200) upstream.clear()
    return String(json.error?.code ?? answer.status)
  }
  const setPrice = async (output: number): Promise<void> => {
    running.write(config(output))
    t.equal(await running.gateway.reload(), true)
  }
  t.equal(await ask(5_000), '200')
  await setPrice(10)
  t.equal(await ask(1), 'budget_exceeded', '1,000 tokens at the new price are more than half of the budget')
  await setPrice(1)
  t.equal(await ask(1_000), '200', 'and less than that at the old one')
  await setPrice(4)
  t.equal(await ask(5_000), '200', 'what is held, 0.004, is all that is left')
  await setPrice(0.000001)
  t.equal(await ask(1), 'budget_exceeded', 'however cheap: 0.026 of 0.01 are spent')
})

t.test('a budget that is raised, lowered, taken away and given again while requests run keeps what is spent of it', async (t) => {
  const upstream = await startUpstream(t)
  const config = (budgets: string): string => [
    `upstreams: { main: { url: "${upstream.url}", credential: upstream-secret } }`,
    `groups: { chat: { protocols: [chat_completions], upstream: main, limits: { budgets: [${budgets}] } } }`,
    'keys: [{ id: key, group: chat, secret: key }]',
    'state: { engine: memory }',
    calm,
  ].join('\n')
  const of = (tokens: number): string => config(`{ tokens: ${tokens}, period: total }`)
  const running = await start(t, of(3_000))
  const set = async (text: string): Promise<void> => {
    running.write(text)
    t.equal(await running.gateway.reload(), true)
  }
  const ask = async (before = async (): Promise<void> => {}): Promise<number> => {
    upstream.queue({ headers: { 'content-type': 'application/json' }, body: reply, before })
    const { status } = await chat(running.origin, 'key', { max_tokens: 900 })
    if (status !== 200) upstream.clear()
    return status
  }
  t.equal(await ask(), 200)
  let goOn = (): void => {}
  const changed = new Promise<void>((resolve) => { goOn = resolve })
  const inFlight = ask(async () => await changed)
  await upstream.requests.next()
  await upstream.requests.next()
  await set(of(1_500))
  t.equal(await ask(), 403, 'lowered: 1,000 are spent and 900 are held')
  await set(of(5_000))
  t.equal(await ask(), 200, 'raised: 2,000 are spent and 900 are held')
  await set(config(''))
  t.equal(await ask(), 200, 'taken away: whatever was spent, and nothing is counted')
  goOn()
  t.equal(await inFlight, 200)
  await set(of(3_800))
  t.equal(await ask(), 403, 'given again: 3,000 are spent')
  await set(of(4_000))
  t.equal(await ask(), 200)
})

t.test('price lists are watched with the configuration', async (t) => {
  const folder = t.testdir({ 'gateway.yaml': 'a', 'one.yaml': '1', 'two.yaml': '2' })
  const file = (name: string): string => join(folder, name)
  const changes = new Signal<number>()
  let others = [file('one.yaml')]
  const end = watchConfig(file('gateway.yaml'), 5, () => changes.push(1), () => others)
  // The watcher keeps no process alive.
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => {
    end()
    clearInterval(alive)
  })
  writeFileSync(file('one.yaml'), 'changed')
  await changes.next()
  others = [file('two.yaml')]
  writeFileSync(file('gateway.yaml'), 'changed')
  await changes.next()
  writeFileSync(file('two.yaml'), 'changed')
  await changes.next()
})

t.test('wrong prices in the configuration itself are told with their line', async (t) => {
  const wrong = (more: string): string[] => {
    try {
      parseConfig(yaml('http://127.0.0.1:9', ['key'], more), {})
      return []
    } catch (error) {
      return error instanceof ConfigError ? error.toLines('gateway.yaml') : [String(error)]
    }
  }
  t.strictSame(wrong('prices:\n  models:\n    m: { input: -1 }'), ['gateway.yaml:7: prices.models.m.input: must be >= 0, not -1'])
  t.strictSame(
    wrong('prices:\n  models:\n    m: [{ input: "1" }]'), ['gateway.yaml:7: prices.models.m[0].input: must be number, not string "1"']
  )
  t.strictSame(wrong('prices:\n  currency: dollars'), [
    'gateway.yaml:6: prices.currency: is not valid: it must be a code of ISO 4217, such as USD; every price of a gateway is in the ' +
      'same one',
  ])
  t.strictSame(wrong('prices: { unpriced: deny }'), ['gateway.yaml:5: prices.unpriced: must be one of allow, refuse, not "deny"'])
})

t.test('the schema of price lists agrees with their reader', async (t) => {
  const schema: object = createRequire(import.meta.url)('../../schemas/prices.schema.json')
  const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true })
  const validate = ajv.compile(schema)
  const agrees = (name: string, rows: unknown): void => {
    const problems: string[] = []
    readRows(rows, new Place('', (path, message) => problems.push(`${path} ${message}`)), 'USD')
    t.equal(validate({ models: { m: rows } }), problems.length === 0, `${name}: ${problems.join(', ')} ${JSON.stringify(validate.errors)}`)
  }
  const wrong: { models: Record<string, unknown> } = parse(readFileSync(
    new URL('../fixtures/costs/wrong-prices.yaml', import.meta.url), 'utf8'
  ))
  // What a schema cannot say: how long a number is, what is much in a currency, what stands twice, and what follows what.
  const beyond = ['digits', 'huge', 'order', 'overlap', 'currency']
  for (const [name, rows] of Object.entries(wrong.models)) if (!beyond.includes(name)) agrees(name, rows)
  const bills: Array<{ name: string, row: unknown }> = parse(readFileSync(new URL('../fixtures/costs/bills.yaml', import.meta.url), 'utf8'))
  for (const { name, row } of bills) if (row !== null) agrees(name, row)
})
