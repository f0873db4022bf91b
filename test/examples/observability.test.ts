import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { catalogue, prefix } from '../../plugins/metrics/catalogue.js'
import { namesOf, undeclared } from '../metrics/promql.js'
import { needs, promtool } from '../metrics/programs.js'

const folder = new URL('../../examples/observability/', import.meta.url)

function file (name: string): string {
  return readFileSync(new URL(name, folder), 'utf8')
}

interface Rule {
  readonly record?: string
  readonly alert?: string
  readonly expr: string
}

interface Panel {
  readonly title: string
  readonly type: string
  readonly description?: string
  readonly gridPos: { readonly x: number, readonly y: number, readonly w: number, readonly h: number }
  readonly targets?: ReadonlyArray<{ readonly expr: string }>
}

function rulesOf (name: string): Rule[] {
  return parse(file(name)).groups.flatMap((group: { rules: Rule[] }) => group.rules)
}

const recording = rulesOf('recording.yml')
const alerts = rulesOf('alerts.yml')
const recorded = new Set(recording.map(({ record }) => String(record)))
const panels: Panel[] = JSON.parse(file('dashboard.json')).panels
const queries = panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })))

t.test('promtool accepts the configuration and the rules', needs('promtool'), async (t) => {
  for (const args of [['check', 'config', 'prometheus.yml'], ['check', 'rules', 'recording.yml', 'alerts.yml']]) {
    const [command = '', what = '', ...names] = args
    const { code, output } = promtool([command, what, ...names.map((name) => new URL(name, folder).pathname)])
    t.equal(code, 0, output)
  }
})

t.test('every alert fires when it should and is silent when it should', needs('promtool'), async (t) => {
  const { code, output } = promtool(['test', 'rules', new URL('alerts.test.yml', folder).pathname])
  t.equal(code, 0, output)
})

t.test('every alert has a case in which it fires, a severity and words', async (t) => {
  const tests: Array<{ alert_rule_test: Array<{ alertname: string, exp_alerts?: unknown[] }> }> = parse(file('alerts.test.yml')).tests
  const firing = new Set(tests.flatMap((test) => test.alert_rule_test)
    .filter((test) => test.exp_alerts !== undefined)
    .map((test) => test.alertname))
  for (const { alert, ...rule } of alerts) {
    t.ok(firing.has(String(alert)), String(alert))
    t.match(rule, { labels: { severity: /^(page|ticket|info)$/ }, annotations: { summary: String, description: String } })
  }
})

t.test('rules and dashboard use metrics and labels of the catalogue only', async (t) => {
  for (const { record, alert, expr } of [...recording, ...alerts]) t.strictSame(undeclared(expr, recorded), [], String(record ?? alert))
  for (const { title, expr } of queries) t.strictSame(undeclared(expr, recorded), [], title)
})

t.test('such a use is seen', async (t) => {
  const rows = [
    ['rate(llm_gateway_request_total[5m])', ['llm_gateway_request_total']],
    ['sum by (tenant) (llm_gateway_series)', ['tenant']],
    ['llm_gateway_requests_total{user="x"}', ['user']],
    ['llm_gateway_requests_total_bucket', ['llm_gateway_requests_total_bucket']],
    ['sum by (le) (llm_gateway_requests_total)', ['le']],
    ['protocol:llm_gateway_unknown:ratio', ['protocol:llm_gateway_unknown:ratio']],
    ['sum by (le, protocol) (rate(llm_gateway_overhead_seconds_bucket{protocol=~"$protocol"}[5m]))', []],
  ] as const
  for (const [expr, expected] of rows) t.strictSame(undeclared(expr, recorded), expected, expr)
})

t.test('the documents name metrics of the catalogue only', async (t) => {
  for (const name of ['README.md', '../prometheus/README.md']) {
    for (const metric of namesOf(file(name)).filter((word) => word.startsWith('llm_gateway_'))) {
      t.strictSame(undeclared(metric, recorded), [], metric)
    }
  }
})

t.test('the table of the README has every alert', async (t) => {
  for (const { alert } of alerts) t.match(file('README.md'), `\`${alert}\``)
})

t.test('the README has those versions of OpenTelemetry installed that are run here: its newest do not go together', async (t) => {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(new URL('../../package.json', folder), 'utf8'))
  const [command = ''] = /^npm install @opentelemetry(?:.*\\\n)*.*/m.exec(file('README.md')) ?? []
  const named = [...command.matchAll(/(@opentelemetry\/\S+?)@(\S+)/g)]
  const imported = [...file('otel.js').matchAll(/from '(@opentelemetry\/.*)'/g)].map(([, name]) => name)
  t.same(named.map(([, name]) => name).sort(), imported.sort())
  for (const [, name = '', version = ''] of named) {
    const tested: string = { ...devDependencies, ...dependencies }[name] ?? 'none'
    t.ok(tested.slice(1).startsWith(version), `${name} ${tested}`)
  }
})

t.test('every query of the dashboard parses', needs('promtool'), async (t) => {
  const rules = queries.map(({ expr }, index) => ({
    record: `panel:query:${index}`,
    expr: expr.replaceAll('$__rate_interval', '5m').replace(/\$\w+/g, '.*'),
  }))
  const folder = t.testdir({ 'dashboard.yml': JSON.stringify({ groups: [{ name: 'dashboard', rules }] }) })
  const { code, output } = promtool(['check', 'rules', `${folder}/dashboard.yml`])
  t.equal(code, 0, output)
})

t.test('memory and event loop are those of gateways, not of whatever else is scraped', needs('promtool'), async (t) => {
  const [lag = '', memory = ''] = panels.find(({ title }) => title === 'Event loop and memory')?.targets?.map(({ expr }) => expr) ?? []
  const names = ['process_resident_memory_bytes', 'nodejs_eventloop_lag_p99_seconds']
  const series = [
    ...['a', 'b'].map((instance) => ({ series: `llm_gateway_build_info{job="llm-gateway",instance="${instance}"}`, values: '1x3' })),
    ...names.flatMap((name) => [['llm-gateway', 'a', 2], ['llm-gateway', 'b', 3], ['prometheus', 'c', 9]].map(
      ([job, instance, value]) => ({ series: `${name}{job="${job}",instance="${instance}"}`, values: `${value}x3` })
    )),
  ]
  const asked = [lag, memory].map((expr) => ({ expr, eval_time: '1m', exp_samples: [{ labels: '{}', value: 3 }] }))
  const folder = t.testdir({ 'panel.yml': JSON.stringify({ tests: [{ interval: '1m', input_series: series, promql_expr_test: asked }] }) })
  const { code, output } = promtool(['test', 'rules', `${folder}/panel.yml`])
  t.equal(code, 0, output)
})

t.test('the dashboard shows every metric of the catalogue', async (t) => {
  const shown = queries.map(({ expr }) => expr).join('\n')
  for (const name of Object.keys(catalogue)) t.match(shown, prefix + name, name)
})

t.test('every panel says what it shows, has a place of its own and an id of its own', async (t) => {
  const taken = new Set<string>()
  const clashes: string[] = []
  for (const { title, type, description, gridPos } of panels) {
    if (type !== 'row') t.ok(String(description).length > 3, title)
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
        if (taken.has(`${x},${y}`) || x >= 24) clashes.push(title)
        taken.add(`${x},${y}`)
      }
    }
  }
  t.strictSame(clashes, [])
  const ids = JSON.parse(file('dashboard.json')).panels.map(({ id }: { id: number }) => id)
  t.equal(new Set(ids).size, ids.length)
})
