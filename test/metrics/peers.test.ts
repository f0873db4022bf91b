/** Processes that count together: each serves the sum of all, and keeps its own counts to itself. */
import Fastify from 'fastify'
import t from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import { countTogether, metrics, type Cell, type Family } from '../../plugins/metrics/index.js'
import { samplesOf } from './meters.js'
import { noTokens, settledRequest } from './requests.js'

t.test('each process serves what all counted and hold, however often it is asked', async (t) => {
  const joined: Array<readonly Family[]> = [[], []]
  const told: string[] = []
  const [one, two] = [0, 1].map((own) => {
    const app = Fastify()
    const known = new Map<string, readonly Cell[]>()
    t.teardown(() => app.close())
    const cells = {}
    countTogether(cells, {
      counted: (name: string) => told.push(name),
      join: (families: readonly Family[]) => { joined[own] = families },
      refresh: async () => {
        for (const { name, read } of joined[1 - own] ?? []) known.set(name, read())
      },
      cells: (name: string) => known.get(name) ?? [],
    })
    app.register(metrics, { cells })
    return app
  })
  if (one === undefined || two === undefined) throw new Error('none')
  await Promise.all([one.ready(), two.ready()])
  for (const [app, seconds, value] of [[one, 0.002, 3], [two, 0.02, 1]] as const) {
    const { recorder } = gatewayOf(app)
    recorder.settled(settledRequest({ usage: { tokens: { ...noTokens, input: value } } }))
    recorder.keyLookedUp('miss', seconds)
    recorder.gauge('ledger_lag_seconds', () => [{ labels: {}, value }])
    recorder.gauge('balance_remaining_ratio', () => [{ labels: { group: 'x' }, value }])
    recorder.gauge('upstream_active_requests', () => [{ labels: { upstream: 'main' }, value }])
  }
  gatewayOf(two).recorder.keyLookedUp('hit', 0.002)
  for (const name of ['tokens_total', 'key_lookups_total', 'key_lookup_duration_seconds']) t.ok(told.includes(`llm_gateway_${name}`), name)

  const lookups = 'llm_gateway_key_lookup_duration_seconds'
  for (const app of [one, two, one]) {
    t.match(Object.fromEntries(samplesOf((await app.inject('/metrics')).body)), {
      'llm_gateway_tokens_total{protocol="chat_completions",group="chat",model="gpt-5",direction="input",type="input"}': 4,
      'llm_gateway_key_lookups_total{result="miss"}': 2,
      'llm_gateway_key_lookups_total{result="hit"}': 1,
      [`${lookups}_bucket{result="miss",le="0.001"}`]: 0,
      [`${lookups}_bucket{result="miss",le="0.0025"}`]: 1,
      [`${lookups}_bucket{result="miss",le="0.01"}`]: 1,
      [`${lookups}_bucket{result="miss",le="0.05"}`]: 2,
      [`${lookups}_bucket{result="miss",le="+Inf"}`]: 2,
      [`${lookups}_count{result="miss"}`]: 2,
      [`${lookups}_sum{result="miss"}`]: 0.022,
      [`${lookups}_count{result="hit"}`]: 1,
      llm_gateway_ledger_lag_seconds: 3,
      'llm_gateway_balance_remaining_ratio{group="x"}': 1,
      'llm_gateway_upstream_active_requests{upstream="main"}': 4,
    })
  }
})
