/** Whatever callers, providers and clocks come up with: every text is one that Prometheus reads, and no count is lost. */
import fc from 'fast-check'
import { Registry } from 'prom-client'
import t from 'tap'
import { leaves } from '../../plugins/core/call/measures.js'
import { openMetrics, plainText, renderText } from '../../plugins/metrics/exposition.js'
import { joinRegistry } from '../../plugins/metrics/registry.js'
import type { ModelCall } from '../../plugins/core/call/model-call.js'
import type { TokenUsage } from '../../plugins/core/types.js'
import { newMeters, samplesOf, sumOf } from './meters.js'
import { needs, promtool } from './programs.js'
import { groupOf, noTokens, settledRequest } from './requests.js'

const name = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }), fc.constantFrom('gpt-5', 'a,b:c', '__proto__', 'other', 'none', '', '"}\n# EOF\n', '\ud800')
)
/** What a reader of replies should never let through. */
const noAmount = fc.constantFrom(NaN, -1, Infinity, -Infinity, 1e308)
const amount = fc.oneof({ weight: 5, arbitrary: fc.nat(1_000_000) }, noAmount)
const time = fc.oneof({ weight: 5, arbitrary: fc.integer({ min: 1, max: 5_000 }) }, noAmount)
const usage: fc.Arbitrary<TokenUsage> = fc.record({
  input: amount,
  cache_read: amount,
  cache_write_5m: amount,
  cache_write_1h: amount,
  cache_write: amount,
  tool_input: amount,
  output: amount,
  reasoning: amount,
})

const request: fc.Arbitrary<ModelCall> = fc.record({
  model: fc.option(name),
  group: fc.option(name),
  upstream: fc.option(name),
  usage: fc.option(usage),
  modality: fc.record({ direction: fc.constantFrom('input' as const, 'output' as const), modality: name, tokens: amount }),
  stream: fc.boolean(),
  status: fc.constantFrom(0, 200, 204, 404, 503),
  outcome: fc.constantFrom('ok' as const, 'auth_error' as const, 'truncated' as const, 'client_abort' as const),
  at: fc.record({ bodyStarted: time, body: time, sent: time, headers: time, firstChunk: time, lastChunk: time, ended: time }),
}).map(({ group, modality, upstream, usage: tokens, status, ...fields }) => settledRequest({
  ...fields,
  auth: { group: group === null ? null : groupOf(group) },
  routing: { upstream },
  upstreamReply: { status },
  usage: { tokens, modalities: [modality] },
}))

function tokensIn (requests: readonly ModelCall[]): number {
  const amounts = requests.flatMap((llm) => leaves.map(({ type }) => (llm.usage.tokens ?? noTokens)[type]))
  return amounts.filter((tokens) => tokens >= 0 && tokens < 1e9).reduce((sum, tokens) => sum + tokens, 0)
}

/** `name{label="value",...} number`, where no value holds what could end it. */
const sampleLine = /^[a-z_]+(?:\{[a-z_]+="[^"\\\n]*"(?:,[a-z_]+="[^"\\\n]*")*\})? \d[\d.e+-]*$/

t.test('every line is a sample, every number one, no two alike, nothing lost', async (t) => {
  const everything = newMeters({ maxModels: 20, maxCells: 60 })
  const fromStart = new Map(newMeters().store.families.map(({ name, read }) => [name, read().length]))
  await fc.assert(fc.asyncProperty(fc.array(request, { maxLength: 12 }), fc.integer({ min: 1, max: 8 }), async (requests, maxCells) => {
    const meters = newMeters({ maxCells })
    for (const llm of requests) {
      for (const { recorder } of [meters, everything]) {
        recorder.started(llm)
        recorder.settled(llm)
        recorder.keyLookedUp('miss', llm.times.lastChunkAt)
        recorder.limitRejected(String(llm.model), String(llm.routing.upstream))
      }
    }
    const text = await renderText(meters.store.families, plainText)
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('# '))
    for (const line of lines) if (!sampleLine.test(line)) throw new Error(line)
    const samples = samplesOf(text)
    t.ok(samples.size === lines.length, 'no label set twice')
    for (const { name: family, row, read } of meters.store.families) {
      if (family === 'llm_gateway_label_overflow_total') continue
      // The label sets within the limit and the one for all others, for tokens with all their types.
      const limit = Number(fromStart.get(family)) + (maxCells + 1) * (family === 'llm_gateway_tokens_total' ? leaves.length : 1)
      if (read().length > limit) throw new Error(`${family} has ${read().length} of ${row.labels}`)
    }
    if (sumOf(samples, 'llm_gateway_tokens_total') !== tokensIn(requests)) throw new Error('lost tokens')
    if (sumOf(samples, 'llm_gateway_requests_total') !== requests.length) throw new Error('lost requests')
    if (sumOf(samples, 'llm_gateway_active_requests') !== 0) throw new Error('still active')
  }), { numRuns: 300 })

  await t.test('a registry reads the same', async (t) => {
    const registry = new Registry()
    joinRegistry(registry, everything.store.families)
    t.strictSame(samplesOf(await registry.metrics()), samplesOf(await renderText(everything.store.families, plainText)))
  })

  await t.test('and promtool both formats', needs('promtool'), async (t) => {
    const { families } = everything.store
    t.strictSame(promtool(['check', 'metrics'], await renderText(families, plainText)), { code: 0, output: '' })
    // What reads OpenMetrics wants to know when each sample was taken.
    const text = (await renderText(families, openMetrics)).replace(/^([^#].*)$/gm, '$1 1767225600')
    const folder = t.testdir({ text, blocks: {} })
    const { code, output } = promtool(['tsdb', 'create-blocks-from', 'openmetrics', `${folder}/text`, `${folder}/blocks`])
    t.equal(code, 0, output)
  })
})

t.test('what is beyond the limit keeps the direction and the type of its tokens, and nothing else', async (t) => {
  const meters = newMeters({ maxCells: 1 })
  for (const group of ['a', 'b', 'c']) {
    meters.recorder.settled(settledRequest({ auth: { group: groupOf(group) }, usage: { tokens: { ...noTokens, input: 2, reasoning: 3 } } }))
  }
  const samples = samplesOf(await renderText(meters.store.families, plainText))
  t.strictSame([...samples].filter(([sample]) => sample.startsWith('llm_gateway_tokens_total')), [
    ['llm_gateway_tokens_total{protocol="chat_completions",group="a",model="gpt-5",direction="input",type="input"}', 2],
    ['llm_gateway_tokens_total{protocol="chat_completions",group="a",model="gpt-5",direction="output",type="reasoning"}', 3],
    ['llm_gateway_tokens_total{protocol="other",group="other",model="other",direction="input",type="input"}', 4],
    ['llm_gateway_tokens_total{protocol="other",group="other",model="other",direction="output",type="reasoning"}', 6],
  ])
})
