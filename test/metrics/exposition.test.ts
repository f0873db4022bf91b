import t from 'tap'
import { openMetrics, plainText, renderText } from '../../plugins/metrics/exposition.js'
import { newMeters } from './meters.js'
import { needs, promtool } from './programs.js'
import { groupOf, noTokens, settledRequest } from './requests.js'

/** Meters in which every family has a sample. */
function filled () {
  const meters = newMeters()
  const { recorder } = meters
  const usage = { ...noTokens, input: 3, output: 4 }
  const modalities = [{ direction: 'input' as const, modality: 'text', tokens: 3 }]
  recorder.started(settledRequest())
  const auth = { group: groupOf('quo"te, 100%\n') }
  recorder.settled(settledRequest({ usage: { tokens: usage, modalities }, stream: true, abortedBy: 'upstream', auth }))
  recorder.settled(settledRequest({ usage: { tokens: usage, missing: 'no_usage', inconsistent: true }, stream: true }))
  recorder.settled(settledRequest({ model: 'strange name' }))
  recorder.pathNormalized('messages', 'missing_prefix')
  recorder.authFailed('messages', 'unknown_key')
  recorder.keyLookedUp('miss', 0.002)
  recorder.validationFailed('messages', 'required')
  recorder.limitRejected('chat', 'balance')
  recorder.ledgerFailed()
  recorder.settlementLost()
  recorder.logDropped()
  recorder.shed('loop_delay')
  const cost = { value: 0.1, currency: 'USD', unpriced: true }
  recorder.settled(Object.assign(settledRequest(), { cost }))
  recorder.upstreamAttempted('main', 'ok')
  recorder.failedOver('pool', '503')
  recorder.budgetReached('chat', 'day', 80)
  recorder.gauge('upstream_available', () => [{ labels: { upstream: 'main' }, value: 1 }])
  recorder.gauge('upstream_active_requests', () => [{ labels: { upstream: 'main' }, value: 1 }])
  recorder.gauge('model_aliases', () => [{ labels: { upstream: 'main', model: 'a', sent_as: 'b' }, value: 1 }])
  recorder.gauge('budget_remaining_ratio', () => [{ labels: { group: 'chat', period: 'day' }, value: 0.5 }])
  recorder.gauge('key_cache_entries', () => [{ labels: { kind: 'positive' }, value: 12 }])
  recorder.gauge('balance_remaining_ratio', () => [{ labels: { group: 'chat' }, value: 0.5 }])
  recorder.gauge('ledger_unshipped_records', () => [{ labels: {}, value: 2 }])
  recorder.gauge('ledger_lag_seconds', () => [{ labels: {}, value: 0.5 }])
  return meters
}

t.test('promtool finds nothing to say about the text', needs('promtool'), async (t) => {
  const text = await renderText(filled().store.families, plainText)
  t.strictSame(promtool(['check', 'metrics'], text), { code: 0, output: '' })
})

t.test('every family has a help, a type and a sample', async (t) => {
  const { store } = filled()
  const text = await renderText(store.families, plainText)
  for (const { name, row } of store.families) {
    t.match(text, `# HELP ${name} ${row.help}\n# TYPE ${name} ${row.type}\n${name}`)
  }
})

t.test('buckets count upwards and end with everything', async (t) => {
  const text = await renderText(filled().store.families, plainText)
  t.match(text, [
    'llm_gateway_key_lookup_duration_seconds_bucket{result="miss",le="0.001"} 0',
    'llm_gateway_key_lookup_duration_seconds_bucket{result="miss",le="0.0025"} 1',
    'llm_gateway_key_lookup_duration_seconds_bucket{result="miss",le="0.005"} 1',
  ].join('\n'))
  t.match(text, [
    'llm_gateway_key_lookup_duration_seconds_bucket{result="miss",le="1"} 1',
    'llm_gateway_key_lookup_duration_seconds_bucket{result="miss",le="+Inf"} 1',
    'llm_gateway_key_lookup_duration_seconds_sum{result="miss"} 0.002',
    'llm_gateway_key_lookup_duration_seconds_count{result="miss"} 1',
  ].join('\n'))
})

t.test('OpenMetrics names counters without _total, their samples with it, and ends', async (t) => {
  const text = await renderText(filled().store.families, openMetrics)
  t.match(text, '# TYPE llm_gateway_auth_failures counter\nllm_gateway_auth_failures_total{')
  t.match(text, '\nllm_gateway_auth_failures_total{protocol="messages",reason="unknown_key"} 1\n')
  t.match(text, /llm_gateway_series \d+\n/)
  t.ok(text.endsWith('\n# EOF\n'))
  t.notMatch(text, '\n\n')
})

t.test('a large scrape gives way to other work', async (t) => {
  const meters = newMeters({ maxCells: 20_000 })
  for (let n = 0; n < 12_000; n += 1) meters.recorder.limitRejected(`group-${n}`, 'balance')
  let turns = 0
  setImmediate(() => { turns += 1 })
  const text = await renderText(meters.store.families, plainText)
  t.ok(text.split('\n').length > 12_000)
  t.ok(turns > 0)
})
