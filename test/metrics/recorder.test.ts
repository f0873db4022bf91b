import t from 'tap'
import { catalogue, prefix } from '../../plugins/metrics/catalogue.js'
import type { ModelCall } from '../../plugins/core/call/model-call.js'
import { plainText, renderText } from '../../plugins/metrics/exposition.js'
import { newMeters, samplesOf, valuesOf } from './meters.js'
import { groupOf, noTokens, settledRequest } from './requests.js'

/** What the cells hold after these requests, names without their prefix. */
async function after (...requests: ModelCall[]): Promise<Record<string, number>> {
  const meters = newMeters()
  for (const llm of requests) {
    meters.recorder.started(llm)
    meters.recorder.settled(llm)
  }
  const values = await valuesOf(meters)
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name.slice(prefix.length), value]))
}

t.test('one request that went well', async (t) => {
  const usage = { ...noTokens, input: 10, cache_read: 5, output: 20, reasoning: 7 }
  const values = await after(settledRequest({ usage: { tokens: usage } }))
  t.strictSame(Object.keys(values).filter((name) => /failures|missing|inconsistent|aborts|modality|cost|unpriced/.test(name)), [])
  t.match(values, {
    'requests_total{protocol="chat_completions",group="chat",model="gpt-5",stream="false",outcome="ok"}': 1,
    'tokens_total{protocol="chat_completions",group="chat",model="gpt-5",direction="input",type="input"}': 10,
    'tokens_total{protocol="chat_completions",group="chat",model="gpt-5",direction="input",type="cache_read"}': 5,
    'tokens_total{protocol="chat_completions",group="chat",model="gpt-5",direction="output",type="output"}': 20,
    'tokens_total{protocol="chat_completions",group="chat",model="gpt-5",direction="output",type="reasoning"}': 7,
    'active_requests{protocol="chat_completions"}': 0,
    'request_duration_seconds_count{protocol="chat_completions",model="gpt-5",stream="false",outcome="ok"}': 1,
    'request_duration_seconds_sum{protocol="chat_completions",model="gpt-5",stream="false",outcome="ok"}': 1,
    'upstream_responses_total{upstream="main",status_class="2xx"}': 1,
  })
})

t.test('no name is learnt from a reply that told a failure', async (t) => {
  t.match(await after(settledRequest({ usage: { replyFailed: true }, outcome: 'upstream_error' })), {
    'requests_total{protocol="chat_completions",group="chat",model="other",stream="false",outcome="upstream_error"}': 1,
    'upstream_responses_total{upstream="main",status_class="2xx"}': 1,
  })
})

t.test('a leaf without tokens makes no series', async (t) => {
  const values = await after(settledRequest({ usage: { tokens: { ...noTokens, output: 1 } } }))
  t.strictSame(Object.keys(values).filter((name) => name.startsWith('tokens_total')), [
    'tokens_total{protocol="chat_completions",group="chat",model="gpt-5",direction="output",type="output"}',
  ])
})

t.test('overhead leaves out the wait for the body and for the upstream', async (t) => {
  const values = await after(settledRequest({ at: { bodyStarted: 2, body: 502, sent: 505, headers: 800 } }))
  t.equal(values['overhead_seconds_sum{protocol="chat_completions"}'], 0.005)
})

t.test('a request that never went to an upstream has no overhead and no upstream reply', async (t) => {
  const values = await after(settledRequest({ upstreamReply: { status: 0 }, outcome: 'client_error', at: { sent: 0 } }))
  t.notOk(Object.keys(values).some((name) => /^(overhead|upstream)/.test(name)))
})

t.test('the pace of a streamed reply', async (t) => {
  const streamed = { stream: true, usage: { tokens: { ...noTokens, output: 101 } } }
  const rows = [
    { name: 'measured between its first and last chunk', fields: streamed, first: 1, pace: 1 },
    { name: 'is not told of one token', fields: { ...streamed, usage: { tokens: { ...noTokens, output: 1 } } }, first: 1, pace: undefined },
    { name: 'is not told without usage', fields: { ...streamed, usage: { tokens: null } }, first: 1, pace: undefined },
    { name: 'is not told of a broken stream', fields: { ...streamed, outcome: 'client_abort' as const }, first: 1, pace: undefined },
    { name: 'is not told of a reply that was not streamed', fields: { ...streamed, stream: false }, first: undefined, pace: undefined },
    { name: 'is not told of a failure', fields: { ...streamed, upstreamReply: { status: 500 } }, first: undefined, pace: undefined },
    {
      name: 'is not told of a failure that a reply of success told',
      fields: { ...streamed, usage: { ...streamed.usage, replyFailed: true }, outcome: 'upstream_error' as const },
      first: undefined,
      pace: undefined,
    },
    { name: 'is not told before a first chunk', fields: { ...streamed, at: { firstChunk: 0 } }, first: undefined, pace: undefined },
  ]
  for (const { name, fields, first, pace } of rows) {
    const values = await after(settledRequest(fields))
    const model = 'upstreamReply' in fields ? 'other' : 'gpt-5'
    t.equal(values[`time_to_first_chunk_seconds_count{protocol="chat_completions",model="${model}"}`], first, name)
    t.equal(values[`time_per_output_token_seconds_count{protocol="chat_completions",model="${model}"}`], pace, name)
  }
  const values = await after(settledRequest(streamed))
  t.equal(values['time_to_first_chunk_seconds_sum{protocol="chat_completions",model="gpt-5"}'], 0.4)
  t.equal(values['time_per_output_token_seconds_sum{protocol="chat_completions",model="gpt-5"}'], 0.005)
})

t.test('upstream replies by class of status', async (t) => {
  const values = await after(
    settledRequest({ upstreamReply: { status: 429 } }),
    settledRequest({ upstreamReply: { status: 503 } }),
    settledRequest({ upstreamReply: { status: 0 } }),
    settledRequest({ upstreamReply: { status: 0 }, abortedBy: 'client' }),
    settledRequest({ routing: { upstream: null } })
  )
  const found = Object.entries(values).filter(([name]) => name.startsWith('upstream'))
  t.strictSame(Object.fromEntries(found), {
    'upstream_responses_total{upstream="main",status_class="4xx"}': 1,
    'upstream_responses_total{upstream="main",status_class="5xx"}': 1,
    'upstream_responses_total{upstream="main",status_class="error"}': 1,
    'upstream_responses_total{upstream="none",status_class="2xx"}': 1,
  })
})

t.test('each attempt that an upstream was asked in counts by its own reply, the last one once', async (t) => {
  const attempt = (upstream: string, result: string, status: number) => ({ upstream, result, status, durationMs: 1 })
  const values = await after(
    settledRequest({ routing: { upstream: 'b', attempts: [attempt('a', 'overloaded', 503), attempt('b', 'ok', 200)] } }),
    settledRequest({
      routing: {
        upstream: 'b',
        attempts: [attempt('a', 'queue', 0), attempt('a', 'credential', 0), attempt('a', 'connect', 0), attempt('b', 'left', 0)],
      },
      upstreamReply: { status: 0 },
      abortedBy: 'client',
    })
  )
  const found = Object.entries(values).filter(([name]) => name.startsWith('upstream'))
  t.strictSame(Object.fromEntries(found), {
    'upstream_responses_total{upstream="a",status_class="5xx"}': 1,
    'upstream_responses_total{upstream="b",status_class="2xx"}': 1,
    'upstream_responses_total{upstream="a",status_class="error"}': 1,
  })
})

t.test('what went wrong with a reply is told by its reason', async (t) => {
  const values = await after(
    settledRequest({ usage: { missing: 'no_usage' } }),
    settledRequest({ usage: { inconsistent: true } }),
    settledRequest({ stream: true, abortedBy: 'upstream', outcome: 'truncated' }),
    settledRequest({ stream: false, abortedBy: 'client', outcome: 'client_abort' })
  )
  t.match(values, {
    'usage_missing_total{protocol="chat_completions",reason="no_usage"}': 1,
    'usage_inconsistent_total{protocol="chat_completions"}': 1,
    'stream_aborts_total{protocol="chat_completions",side="upstream"}': 1,
  })
  t.notOk(Object.keys(values).includes('stream_aborts_total{protocol="chat_completions",side="client"}'), 'only streams count as such')
})

t.test('modalities are a view of their own, of known kinds', async (t) => {
  const known = ['text', 'image', 'audio', 'video', 'document']
  const modalities = [
    ...known.map((modality) => ({ direction: 'input' as const, modality, tokens: 3 })),
    { direction: 'output' as const, modality: 'smell', tokens: 4 },
  ]
  const values = await after(settledRequest({ usage: { modalities } }))
  const labels = 'protocol="chat_completions",group="chat",model="gpt-5"'
  for (const modality of known) t.equal(values[`modality_tokens_total{${labels},direction="input",modality="${modality}"}`], 3)
  t.equal(values[`modality_tokens_total{${labels},direction="output",modality="other"}`], 4)
})

t.test('a cost that is known, in part or not at all', async (t) => {
  const labels = 'protocol="chat_completions",group="chat",model="gpt-5",currency="USD"'
  const unpriced = 'llm_gateway_unpriced_requests_total{protocol="chat_completions",model="gpt-5"}'
  for (const cost of [{ value: 0.5, unpriced: false }, { value: 0.5, unpriced: true }, { value: null, unpriced: true }]) {
    const { recorder, store } = newMeters()
    recorder.settled(Object.assign(settledRequest(), { cost: { ...cost, currency: 'USD' } }))
    const samples = samplesOf(await renderText(store.families, plainText))
    t.equal(samples.get(`llm_gateway_cost_total{${labels}}`), cost.value ?? undefined)
    t.equal(samples.get(unpriced), cost.unpriced ? 1 : undefined)
  }
})

t.test('labels of a request that says little', async (t) => {
  const rows = [
    { fields: { auth: { group: null }, model: null }, labels: 'group="none",model="none"' },
    { fields: { model: null, usage: { responseModel: 'gpt-6' } }, labels: 'group="chat",model="gpt-6"' },
    {
      fields: { outcome: 'auth_error' as const, auth: { group: null }, upstreamReply: { status: 0 } },
      labels: 'group="none",model="none"',
    },
    { fields: { upstreamReply: { status: 404 }, auth: { group: groupOf('b') } }, labels: 'group="b",model="other"' },
  ]
  for (const { fields, labels } of rows) {
    const values = await after(settledRequest(fields))
    t.ok(Object.keys(values).some((name) => name.startsWith('requests_total') && name.includes(labels)), labels)
  }
})

t.test('active requests go up and down', async (t) => {
  const meters = newMeters()
  const llm = settledRequest()
  meters.recorder.started(llm)
  meters.recorder.started(settledRequest())
  meters.recorder.settled(llm)
  t.match(await valuesOf(meters), { 'llm_gateway_active_requests{protocol="chat_completions"}': 1 })
})

t.test('what the other plugins tell', async (t) => {
  const meters = newMeters()
  const { recorder } = meters
  recorder.pathNormalized('messages', 'missing_prefix')
  recorder.pathRefused('anthropic', 'unknown_url')
  recorder.authFailed('messages', 'unknown_key')
  recorder.keyLookedUp('hit')
  recorder.keyLookedUp('miss', 0.002)
  recorder.validationFailed('messages', 'required')
  recorder.limitRejected('chat', 'balance')
  recorder.ledgerFailed()
  recorder.settlementLost()
  recorder.logDropped()
  recorder.gauge('key_cache_entries', () => [{ labels: { kind: 'positive' }, value: 12 }])
  let ratio = 0.5
  recorder.gauge('balance_remaining_ratio', () => [{ labels: { group: 'chat' }, value: ratio }, { labels: { group: 'x' }, value: NaN }])
  ratio = 0.25
  t.strictSame(await valuesOf(meters), {
    'llm_gateway_auth_failures_total{protocol="messages",reason="unknown_key"}': 1,
    'llm_gateway_key_lookups_total{result="hit"}': 1,
    'llm_gateway_key_lookups_total{result="miss"}': 1,
    'llm_gateway_key_lookup_duration_seconds_sum{result="miss"}': 0.002,
    'llm_gateway_key_lookup_duration_seconds_count{result="miss"}': 1,
    'llm_gateway_validation_failures_total{protocol="messages",keyword="required"}': 1,
    'llm_gateway_path_normalizations_total{protocol="messages",kind="missing_prefix"}': 1,
    'llm_gateway_path_refusals_total{family="anthropic",reason="unknown_url"}': 1,
    'llm_gateway_limit_rejections_total{group="chat",limit="balance"}': 1,
    llm_gateway_ledger_write_failures_total: 1,
    llm_gateway_settlements_lost_total: 1,
    llm_gateway_log_lines_dropped_total: 1,
    'llm_gateway_key_cache_entries{kind="positive"}': 12,
    'llm_gateway_balance_remaining_ratio{group="chat"}': 0.25,
  })
})

t.test('a body beyond the cap is counted where its request ends, wherever it was cut off', async (t) => {
  const meters = newMeters()
  meters.recorder.settled(settledRequest({ errorCode: 'body_too_large', endpoint: 'messages' }))
  t.match(await valuesOf(meters), { 'llm_gateway_validation_failures_total{protocol="messages",keyword="too_large"}': 1 })
})

t.test('a source that has ended leaves nothing behind', async (t) => {
  const meters = newMeters()
  const end = meters.recorder.gauge('balance_remaining_ratio', () => [{ labels: { group: 'old' }, value: 1 }])
  meters.recorder.gauge('balance_remaining_ratio', () => [{ labels: { group: 'new' }, value: 0.5 }])
  t.equal((await valuesOf(meters))['llm_gateway_balance_remaining_ratio{group="old"}'], 1)
  end()
  t.strictSame(await valuesOf(meters), { 'llm_gateway_balance_remaining_ratio{group="new"}': 0.5 })
})

t.test('every metric of the catalogue has one family', async (t) => {
  const names = newMeters().store.families.map((family) => family.name).sort()
  t.strictSame(names, Object.keys(catalogue).map((name) => `${prefix}${name}`).sort())
})
