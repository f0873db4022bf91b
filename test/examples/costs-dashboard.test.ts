import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import t from 'tap'
import { startPostgres, withoutPostgres } from '../state/postgres-server.js'
import { arrive, folder, host, keep, record } from '../state/usage-store.js'

interface Panel {
  readonly id: number
  readonly title: string
  readonly description: string
  readonly gridPos: { readonly x: number, readonly y: number, readonly w: number, readonly h: number }
  readonly targets: ReadonlyArray<{ readonly rawSql: string }>
}

const dashboard = JSON.parse(readFileSync(new URL('../../examples/observability/costs-dashboard.json', import.meta.url), 'utf8'))
const panels: Panel[] = dashboard.panels
const variables: Array<{ name: string, query: string }> = dashboard.templating.list

/** What Grafana makes of a query: its macros and variables replaced. */
function filled (sql: string, groups: readonly string[]): string {
  const text = (value: string): string => `'${value}'`
  return sql
    .replaceAll('$__timeFilter(quarter)', "quarter BETWEEN now() - interval '40 days' AND now()")
    .replaceAll('$__timeGroupAlias(quarter, $__interval)', 'floor(extract(epoch FROM quarter) / 86400) * 86400 AS "time"')
    .replaceAll(/\$\{currency:sqlstring\}/g, text('USD'))
    .replaceAll(/\$\{group:sqlstring\}/g, groups.map(text).join(','))
    .replaceAll(/\$\{timezone:sqlstring\}/g, text('Europe/Berlin'))
    .replaceAll(/\$\{budget:sqlstring\}/g, text('10'))
}

t.test('every panel says what it shows and has a place of its own', async (t) => {
  const places = panels.flatMap(({ gridPos: { x, y, w, h } }) => Array.from(
    { length: w * h }, (_, at) => `${x + at % w},${y + Math.floor(at / w)}`
  ))
  t.equal(new Set(places).size, places.length)
  t.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
  for (const { title, description } of panels) t.ok(description.length > 3, title)
})

t.test('every query tells what is in the usage store', { skip: withoutPostgres }, async (t) => {
  const server = await startPostgres()
  t.teardown(server.stop)
  const store = { url: server.url, schema: 'llm_gateway', intervalMs: 20 }
  const state = await host(t, folder(t), store)
  const usd = (cost: string): object => ({ cost, currency: 'USD', costParts: { input: cost } })
  // Always of an earlier month, and within the time that is shown.
  const before = Date.now() - 35 * 24 * 60 * 60_000
  const all = [
    record({ time: before, labels: { team: 'search' }, model: 'm', ...usd('0.125') }),
    record({ labels: { team: 'search' }, model: 'm', ...usd('1.5') }),
    record({ labels: { team: 'search' }, model: 'n', key: 'other', ...usd('0.25') }),
    record({ labels: { app: 'shop' }, model: 'm', group: null, key: null, ...usd('2') }),
    record({ labels: { team: 'search' }, group: 'closed', ...usd('100') }),
    record({ cost: '7', currency: 'EUR', costParts: { input: '7' } }),
    record({ model: 'new', cost: null, currency: 'USD', costParts: { input: null } }),
  ]
  await keep(state, all)
  await arrive(server, store, all)
  const page = readFileSync(new URL('../../docs/usage-store.md', import.meta.url), 'utf8')
  const [grants = '', timeouts = '', report = ''] = [...page.matchAll(/```sql\n([^]*?)```/g)].map(([, sql = '']) => sql)
  await server.ask(grants)
  await server.ask(timeouts.replaceAll('gateway', 'tester'))
  // What the page grants is enough for all that follows.
  const reader = new pg.Client({ connectionString: server.url.replace('tester', 'reports') })
  await reader.connect()
  t.teardown(async () => await reader.end())
  const ask = async (sql: string): Promise<object[]> => (await reader.query(sql)).rows
  const answers = async (title: string): Promise<object[]> => {
    const sql = panels.find((panel) => panel.title === title)?.targets[0]?.rawSql ?? ''
    return await ask(filled(sql, ['chat', '-']))
  }
  /** Of a chart, the earliest first. */
  const lines = async (title: string): Promise<string[]> => {
    const { rows } = await reader.query<{ time: string, metric: string, value: string | null }>(
      filled(panels.find((panel) => panel.title === title)?.targets[0]?.rawSql ?? '', ['chat', '-'])
    )
    rows.sort((a, b) => Number(a.time) - Number(b.time) || a.metric.localeCompare(b.metric))
    return rows.map(({ metric, value }) => `${metric} ${value}`)
  }
  t.strictSame(await answers('Cost'), [{ cost: '3.875' }])
  t.strictSame(await answers('Cost of this month'), [{ cost: '3.75' }])
  t.match(await answers('Budget left'), [{ left: /^0\.6250*$/ }])
  t.strictSame(await answers('Requests without a price'), [{ requests: '1' }])
  t.strictSame(await lines('Cost by team'), ['search 0.125', '- 2', 'search 1.75'])
  t.strictSame(await lines('Cost by model'), ['m 0.125', 'm 3.5', 'n 0.25', 'new null'])
  t.match(await answers('Teams'), [
    { team: '-', requests: '2', cost: '2' }, { team: 'search', requests: '3', input: '12', output: '18', cost: '1.875' },
  ])
  t.match(await answers('Keys'), [{ key_id: null, cost: '2' }, { key_id: 'ci', cost: '1.625' }, { key_id: 'other', cost: '0.25' }])
  t.match(await answers('Models without a price'), [{ model: 'new', requests: '1' }])
  t.match(await answers('Age of what was shipped last'), [{ age: /^\d+\./ }])
  for (const { name, query } of variables.filter(({ query }) => query.startsWith('SELECT'))) {
    t.ok((await ask(query)).length > 1, name)
  }
  t.same(await ask(report), [
    { team: 'search', currency: 'USD', sum: '101.75' },
    { team: null, currency: 'EUR', sum: '7' },
    { team: null, currency: 'USD', sum: '2' },
  ], 'the query of the page')
  for (const { title, targets } of panels) for (const { rawSql } of targets) t.notMatch(filled(rawSql, []), /\$/, title)
})

t.test('before the first record every query is answered', { skip: withoutPostgres }, async (t) => {
  const server = await startPostgres()
  t.teardown(server.stop)
  await host(t, folder(t), { url: server.url, schema: 'llm_gateway', intervalMs: 20 })
  const made = async (): Promise<boolean> => (await server.ask<{ made: boolean }>(
    "SELECT to_regclass('llm_gateway.version') IS NOT NULL AS made"
  ))[0]?.made === true
  while (!await made()) await pause(50)
  const choices = variables.find(({ name }) => name === 'group')?.query ?? ''
  const groups = (await server.ask(choices)).map((row) => String(Object.values(row)[0]))
  for (const { title, targets } of panels) {
    for (const { rawSql } of targets) t.ok(Array.isArray(await server.ask(filled(rawSql, groups))), title)
  }
})
