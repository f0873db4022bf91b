/** Labels of keys and groups in the metrics: which, of whom, and how many. */
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import Fastify from 'fastify'
import { Registry } from 'prom-client'
import t from 'tap'
import { metrics, type MetricsOptions } from '../../plugins/metrics/index.js'
import { plainText, renderText } from '../../plugins/metrics/exposition.js'
import type { Group, Key, Labels } from '../../plugins/core/types.js'
import type { ModelCall } from '../../plugins/core/call/model-call.js'
import { secret, startGateway } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { newMeters, samplesOf, sumOf, valuesOf } from './meters.js'
import { groupOf, noTokens, settledRequest } from './requests.js'

const usage = { ...noTokens, input: 10, output: 3 }

function groupWith (labels: Labels): Group {
  return { ...groupOf('chat'), labels }
}

function keyWith (labels: Labels): Key {
  return { id: 'k', group: 'chat', disabled: false, expiresAt: null, limits: {}, labels }
}

function settledOf (group: Group, key: Key | null = null): ModelCall {
  const llm = settledRequest({ usage: { tokens: usage }, auth: { group } })
  llm.auth.key = key
  return llm
}

t.test('requests, tokens and costs by label, in Prometheus, a registry and OpenTelemetry', async (t) => {
  const upstream = await startUpstream(t)
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const provider = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })] })
  t.teardown(() => provider.shutdown())
  const registry = new Registry()
  const { app, settled } = await startGateway(t, upstream.url, {
    metrics: { registry, path: '/metrics', labels: ['team', 'stage'], meterProvider: provider },
    labels: { header: 'x-llm-labels' },
    prices: { models: { 'gpt-5': { input: 1, output: 2 } } },
    groups: { all: { protocols: ['chat_completions'], labels: { team: 'search', cost_centre: '7' } } },
    keys: [{ id: 'own', group: 'all', secret, labels: { team: 'shop' } }, { id: 'plain', group: 'all', secret: `${secret}-2` }],
  })
  for (const credential of [secret, `${secret}-2`, 'nobody']) {
    await app.inject({
      method: 'POST',
      url: '/v1/chat/completions',
      headers: { authorization: `Bearer ${credential}`, 'x-llm-labels': 'team=invented,stage=invented' },
      payload: { model: 'gpt-5', messages: [{ role: 'user', content: 'hi' }] },
    })
    await settled.next()
  }
  const { body } = await app.inject('/metrics')
  for (const team of ['shop', 'search']) {
    t.match(
      body,
      'llm_gateway_requests_total{protocol="chat_completions",group="all",model="gpt-5",stream="false",outcome="ok",' +
        `team="${team}",stage="none"} 1\n`
    )
    t.match(
      body,
      `llm_gateway_tokens_total{protocol="chat_completions",group="all",model="gpt-5",team="${team}",stage="none",` +
        'direction="input",type="input"} '
    )
    t.match(
      body, `llm_gateway_cost_total{protocol="chat_completions",group="all",model="gpt-5",currency="USD",team="${team}",stage="none"} `
    )
  }
  t.match(body, 'outcome="auth_error",team="none",stage="none"} 1\n')
  t.notMatch(body, 'invented', 'what callers say of themselves makes no series')
  t.match(body, 'llm_gateway_label_overflow_total{label="team"} 0\n')
  await provider.forceFlush()
  const [collected] = exporter.getMetrics()
  const points = (name: string) =>
    collected?.scopeMetrics.flatMap((scope) => scope.metrics).find(({ descriptor }) => descriptor.name === name)?.dataPoints ?? []
  for (const name of ['llm_gateway.requests', 'llm_gateway.tokens', 'llm_gateway.cost']) {
    const teams = new Set(points(name).map(({ attributes }) => attributes.team))
    t.ok(teams.has('shop') && teams.has('search') && points(name).every(({ attributes }) => attributes.stage === 'none'), name)
  }
})

t.test('each key has its own labels and else those of its group, whoever asked before', async (t) => {
  const meters = newMeters({ labels: ['team'] })
  const search = groupWith({ team: 'search' })
  const shop = groupWith({ team: 'shop' })
  const asking: ReadonlyArray<readonly [group: Group, key: Key | null, team: string]> = [
    [search, null, 'search'],
    [search, keyWith({ team: 'own' }), 'own'],
    [search, null, 'search'],
    [shop, keyWith({}), 'shop'],
    [groupOf('none'), null, 'none'],
  ]
  for (const [group, key] of [...asking, ...asking]) meters.recorder.settled(settledOf(group, key))
  const values = Object.entries(await valuesOf(meters))
  for (const team of new Set(asking.map(([,, team]) => team))) {
    const [, counted] = values.find(([name]) => name.startsWith('llm_gateway_requests_total') && name.includes(`team="${team}"`)) ?? []
    t.equal(counted, asking.filter((each) => each[2] === team).length * 2, team)
  }
})

t.test('no more values of a label than are allowed, and no sum lost', async (t) => {
  const meters = newMeters({ labels: ['team'], maxLabelValues: 2 })
  for (const team of ['a', 'b', 'c', 'a', 'other', 'none']) meters.recorder.settled(settledOf(groupWith({ team })))
  const beyond = groupWith({ team: 'd' })
  for (const group of [beyond, beyond, groupOf('chat')]) meters.recorder.settled(settledOf(group))
  const requests = (team: string) =>
    `llm_gateway_requests_total{protocol="chat_completions",group="chat",model="gpt-5",stream="false",outcome="ok",team="${team}"}`
  t.match(await valuesOf(meters), {
    [requests('a')]: 2,
    [requests('b')]: 1,
    [requests('other')]: 4,
    [requests('none')]: 2,
    'llm_gateway_label_overflow_total{label="team"}': 3,
  })
  const samples = samplesOf(await renderText(meters.store.families, plainText))
  t.equal(sumOf(samples, 'llm_gateway_tokens_total'), 9 * 13)
})

t.test('label sets beyond the limit of cells are other in these labels, too', async (t) => {
  const meters = newMeters({ labels: ['team'], maxCells: 1 })
  for (const team of ['a', 'b', 'c']) meters.recorder.settled(settledOf(groupWith({ team })))
  t.match(await valuesOf(meters), {
    'llm_gateway_requests_total{protocol="other",group="other",model="other",stream="other",outcome="other",team="other"}': 2,
    'llm_gateway_tokens_total{protocol="other",group="other",model="other",team="other",direction="output",type="output"}': 6,
    'llm_gateway_label_overflow_total{label="team"}': 4,
  })
})

t.test('a key\'s label stands before its group\'s, and only what is said counts', async (t) => {
  const meters = newMeters({ labels: ['team', 'constructor'] })
  const group = groupWith({ team: 'search' })
  meters.recorder.settled(settledOf(group, keyWith({ team: 'a,"b' })))
  meters.recorder.settled(settledOf(group, keyWith({})))
  const text = await renderText(meters.store.families, plainText)
  t.match(text, 'team="a%002c%0022b",constructor="none"} 1\n')
  t.match(text, 'team="search",constructor="none"} 1\n')
})

t.test('without names nothing changes', async (t) => {
  const meters = newMeters()
  meters.recorder.settled(settledOf(groupWith({ team: 'search' })))
  t.notMatch(await renderText(meters.store.families, plainText), 'team=')
})

t.test('names that the metrics cannot have are refused', async (t) => {
  const wrong: Array<[MetricsOptions['labels'] | string, RegExp]> = [
    ['team', /metrics\.labels must be a list/],
    [['team', ''], /metrics\.labels\[1\] must be a text that is not empty/],
    [['cost-centre'], /metrics\.labels\[0\] must be up to 64 letters, digits and underscores/],
    [['1st'], /metrics\.labels\[0\] must be up to 64/],
    [['__name__'], /metrics\.labels\[0\] must be up to 64/],
    [['a'.repeat(65)], /metrics\.labels\[0\] must be up to 64/],
    [['team', 'model'], /metrics\.labels\[1\] is a label that the metrics have already/],
    [['le'], /metrics\.labels\[0\] is a label that the metrics have already/],
    [['quantile'], /metrics\.labels\[0\] is a label that the metrics have already/],
    [['team', 'team'], /metrics\.labels\[1\] is there twice/],
    [['a', 'b', 'c', 'd', 'e'], /metrics\.labels must be at most 4 labels/],
  ]
  for (const [labels, message] of wrong) {
    const app = Fastify()
    t.teardown(() => app.close())
    await t.rejects(async () => await app.register(metrics, { labels } as MetricsOptions), { code: 'LLM_GATEWAY_OPTION', message })
  }
  const app = Fastify()
  t.teardown(() => app.close())
  await t.rejects(async () => await app.register(metrics, { maxLabelValues: 0 }), {
    code: 'LLM_GATEWAY_OPTION', message: /metrics\.maxLabelValues must be a whole number of at least 1/,
  })
  const four = Fastify()
  t.teardown(() => four.close())
  await four.register(metrics, { labels: ['a', 'b', 'c', 'd'] })
})
