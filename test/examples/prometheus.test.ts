import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { parse, stringify } from 'yaml'
import { freePort } from '../helpers/free-port.js'
import { listen, startGateway } from '../helpers/gateway.js'
import { launch, originOf, program, until } from '../helpers/launch.js'
import { startUpstream } from '../helpers/upstream.js'
import { samplesOf, sumOf } from '../metrics/meters.js'
import { needs } from '../metrics/programs.js'
import { sendTraffic } from '../metrics/traffic.js'

const examples = new URL('../../examples/', import.meta.url)

/** `time`: of the samples, in seconds. */
type Query = (expr: string, time: number) => Promise<Record<string, number>>

/** Runs Prometheus on the example's own configuration, but for the address and a quicker pace; gives what asks it. */
async function startPrometheus (t: Test, config: string, target: string): Promise<Query> {
  const file = new URL(config, examples)
  const parsed = parse(readFileSync(file, 'utf8'))
  const [job] = parsed.scrape_configs
  const quick = {
    ...parsed,
    rule_files: (parsed.rule_files ?? []).map((name: string) => new URL(name, file).pathname),
    scrape_configs: [{ ...job, scrape_interval: '1s', scrape_timeout: '1s', static_configs: [{ targets: [target] }] }],
  }
  const folder = t.testdir({ 'prometheus.yml': stringify(quick), storage: {} })
  const address = `127.0.0.1:${await freePort()}`
  const child = spawn('prometheus', [
    `--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/storage`, `--web.listen-address=${address}`,
    '--log.level=error',
  ], { stdio: 'ignore' })
  const exited = new Promise((resolve) => child.once('close', resolve))
  t.teardown(async () => {
    child.kill()
    await exited
  })
  return async (expr, time) => {
    const reply = await fetch(`http://${address}/api/v1/query?query=${encodeURIComponent(expr)}&time=${time}`)
    const { data } = JSON.parse(await reply.text())
    return Object.fromEntries(data.result.map(({ metric, value }: { metric: object, value: [number, string] }) => [
      Object.values(metric).join(), Number(value[1]),
    ]))
  }
}

/** Asks until the answer is this. Throws after 20 seconds. */
async function eventually (ask: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 20_000; !await ask().catch(() => false);) {
    if (Date.now() > end) throw new Error('Prometheus has not come to what was asked')
    await setTimeout(100)
  }
}

for (const config of ['prometheus/prometheus.yml', 'observability/prometheus.yml']) {
  t.test(`${config}: Prometheus has the very tokens that the providers reported`, needs('prometheus'), async (t) => {
    const upstream = await startUpstream(t)
    const gateway = await startGateway(t, upstream.url)
    const formats = new Set<string>()
    gateway.app.addHook('onSend', async (request, reply) => {
      if (request.url === '/metrics') formats.add(String(reply.getHeader('content-type')))
    })
    const url = await listen(gateway.app)
    const { settled } = await sendTraffic(gateway, url, upstream)
    const ask = await startPrometheus(t, config, new URL(url).host)
    // All is asked as of one moment: a scrape after it that a busy machine is late with would take the samples away.
    let at = 0
    const query = async (expr: string): Promise<Record<string, number>> => await ask(expr, at)
    await eventually(async () => {
      at = Date.now() / 1_000
      return (await query('sum(llm_gateway_requests_total)'))[''] === settled.length
    })

    const byProtocol: Record<string, number> = {}
    const byType: Record<string, number> = {}
    for (const [protocol, leaves] of Object.entries(upstream.totals)) {
      for (const [type, tokens] of Object.entries(leaves)) {
        byProtocol[protocol] = (byProtocol[protocol] ?? 0) + tokens
        if (tokens > 0) byType[type] = (byType[type] ?? 0) + tokens
      }
    }
    t.equal(Object.keys(byProtocol).length, 6, 'all protocols took part')
    t.strictSame(sorted(await query('sum by (protocol) (llm_gateway_tokens_total)')), sorted(byProtocol))
    t.strictSame(sorted(await query('sum by (type) (llm_gateway_tokens_total)')), sorted(byType))
    t.strictSame(await query('sum by (outcome) (llm_gateway_requests_total)'), {
      ok: 11, client_abort: 5, truncated: 1, upstream_error: 1, auth_error: 1,
    })
    t.strictSame(await query('sum by (side) (llm_gateway_stream_aborts_total) > 0'), { client: 5, upstream: 1 })
    t.strictSame(await query('sum by (reason) (llm_gateway_usage_missing_total) > 0'), { upstream_abort: 1 })
    t.strictSame(await query('sum(llm_gateway_active_requests)'), { '': 0 })
    t.strictSame(await query('sum(llm_gateway_request_duration_seconds_count)'), { '': settled.length })
    t.strictSame([...formats], ['application/openmetrics-text; version=1.0.0; charset=utf-8'], 'in the format that Prometheus likes best')
  })
}

t.test('the first request that takes half of a budget is an increase that Prometheus sees', needs('prometheus'), async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url, {
    groups: { all: { protocols: ['chat_completions'], limits: { budgets: [{ tokens: 300, period: 'total' }] } } },
    keys: [{ id: 'a', group: 'all', secret: env.GATEWAY_KEY }],
  })
  const url = await listen(app)
  const ask = await startPrometheus(t, 'observability/prometheus.yml', new URL(url).host)
  const now = async (expr: string): Promise<Record<string, number>> => await ask(expr, Date.now() / 1_000)
  await eventually(async () => Object.keys(await now('llm_gateway_budget_warnings_total')).length === 3)
  t.strictSame(await now('sum by (percent) (llm_gateway_budget_warnings_total)'), { 50: 0, 80: 0, 100: 0 }, 'before the first event')
  await chat(url)
  const rises = 'sum by (percent) (increase(llm_gateway_budget_warnings_total[5m])) > 0'
  await eventually(async () => Object.keys(await now(rises)).length > 0)
  t.strictSame(Object.keys(await now(rises)), ['50'], 'more than half, less than 80 percent')
  t.strictSame(await now('sum by (percent) (llm_gateway_budget_warnings_total)'), { 50: 1, 80: 0, 100: 0 })
})

function sorted (values: Record<string, number>): Array<[string, number]> {
  return Object.entries(values).sort()
}

const env = { UPSTREAM_KEY: 'provider-key', GATEWAY_KEY: 'my-key-0123456789', PORT: '0' }

async function chat (origin: string): Promise<void> {
  const reply = await fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${env.GATEWAY_KEY}`, 'content-type': 'application/json' },
    body: '{"model":"gpt-5","max_completion_tokens":9,"messages":[{"role":"user","content":"hi"}]}',
  })
  t.equal(reply.status, 200)
  await reply.text()
}

t.test('app.js: the gateway\'s metrics join those of the app', async (t) => {
  const upstream = await startUpstream(t)
  const child = launch(t, new URL('prometheus/app.js', examples).pathname, [], { ...env, UPSTREAM_URL: upstream.url })
  const [, origin = ''] = await until(child.out, /^listening on (.*)$/)
  await chat(origin)
  const samples = samplesOf(await (await fetch(`${origin}/metrics`)).text())
  t.equal(sumOf(samples, 'llm_gateway_tokens_total'), 170)
  t.ok(samples.has('process_resident_memory_bytes'))
})

t.test('workers.yaml: one scrape has the sum of all workers', async (t) => {
  const upstream = await startUpstream(t)
  const config = new URL('prometheus/workers.yaml', examples).pathname
  const child = launch(t, program, ['start', '--config', config], { ...env, UPSTREAM_URL: upstream.url }, t.testdir({}))
  const origin = await originOf(child)
  for (let n = 0; n < 10; n += 1) await chat(origin)
  const samples = samplesOf(await (await fetch(`${origin}/metrics`)).text())
  t.equal(sumOf(samples, 'llm_gateway_requests_total'), 10)
  t.equal(sumOf(samples, 'llm_gateway_tokens_total'), 1_700)
  t.equal(sumOf(samples, 'llm_gateway_build_info'), 1, 'information is not added up')
  t.equal(
    samples.get(
      'llm_gateway_request_duration_seconds_bucket{protocol="chat_completions",model="gpt-5",stream="false",outcome="ok",le="+Inf"}'
    ),
    10
  )
  child.process.kill('SIGTERM')
  t.equal(await child.exited, 0)
})
