import type { Attributes, Counter, Histogram, Meter } from '@opentelemetry/api'
import { advisedBounds, attributes, metricNames, nextAttributes, nextEmbeddings, nextMetrics } from '../core/telemetry/genai.js'
import { cacheWritten, errorTypeOf, tokensOf, upstreamDurationOf, upstreamFirstChunkOf } from '../core/call/measures.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { TokenUsage } from '../core/types.js'

/** `legacy`: the metrics of the published package. `next`: those of release 0.1.0 of the conventions. */
export type Semconv = 'legacy' | 'next' | 'both' | 'off'

/** Writes one model call to the instruments of a set. `shared`: attributes of all of them; `error`: what failed. */
type Write = (llm: ModelCall, shared: Attributes, error: Attributes) => void

const sets: Readonly<Record<Semconv, ReadonlyArray<(meter: Meter) => Write>>> = {
  legacy: [legacyTimes, legacyTokens],
  next: [nextCalls],
  both: [legacyTimes, legacyTokens, nextCalls],
  off: [],
}

/**
 * Records model calls by the GenAI conventions, as a client of the provider: only what was sent to an upstream, and only endpoints that
 * consume tokens. `model` is the bounded label, not the caller's own text.
 */
export function recordCalls (meter: Meter, semconv: Semconv): (llm: ModelCall, model: string) => void {
  const writes = sets[semconv].map((open) => open(meter))
  return (llm, model) => {
    if (llm.times.sentAt === 0 || llm.endpoint.metered === 'no') return
    const { operation, family } = llm.endpoint
    const shared: Attributes = { [attributes.operation]: operation, [attributes.provider]: family.provider }
    if (model !== 'none') shared[attributes.requestModel] = model
    const errorType = errorTypeOf(llm)
    const error = errorType === null ? shared : { ...shared, [attributes.errorType]: errorType }
    for (const write of writes) write(llm, shared, error)
  }
}

function secondsHistogram (meter: Meter, name: string): Histogram {
  return meter.createHistogram(name, { unit: 's', advice: { explicitBucketBoundaries: advisedBounds.duration } })
}

function times (meter: Meter, names: Readonly<Record<'duration' | 'timeToFirstChunk', string>>): Write {
  const duration = secondsHistogram(meter, names.duration)
  const firstChunk = secondsHistogram(meter, names.timeToFirstChunk)
  return (llm, shared, error) => {
    duration.record(upstreamDurationOf(llm), error)
    const seconds = upstreamFirstChunkOf(llm)
    if (seconds !== null) firstChunk.record(seconds, shared)
  }
}

function legacyTimes (meter: Meter): Write {
  return times(meter, metricNames)
}

function tokenHistogram (meter: Meter, name: string): Histogram {
  return meter.createHistogram(name, { unit: '{token}', advice: { explicitBucketBoundaries: advisedBounds.tokens } })
}

function legacyTokens (meter: Meter): Write {
  const usage = tokenHistogram(meter, metricNames.tokenUsage)
  return (llm, shared) => {
    if (llm.usage.tokens === null) return
    usage.record(tokensOf(llm.usage.tokens, 'input'), { ...shared, [attributes.tokenType]: 'input' })
    usage.record(tokensOf(llm.usage.tokens, 'output'), { ...shared, [attributes.tokenType]: 'output' })
  }
}

interface NextCounter {
  readonly counter: Counter
  readonly tokens: (usage: TokenUsage) => number
  /** Direction whose modalities divide it; null if no reply reports any. */
  readonly direction: 'input' | 'output' | null
}

const nextCounters: ReadonlyArray<Omit<NextCounter, 'counter'> & { readonly name: string }> = [
  { name: nextMetrics.inputTokens, tokens: (usage) => tokensOf(usage, 'input'), direction: 'input' },
  { name: nextMetrics.outputTokens, tokens: (usage) => tokensOf(usage, 'output'), direction: 'output' },
  { name: nextMetrics.cacheReadTokens, tokens: (usage) => usage.cache_read, direction: null },
  { name: nextMetrics.cacheWriteTokens, tokens: cacheWritten, direction: null },
  { name: nextMetrics.reasoningTokens, tokens: (usage) => usage.reasoning, direction: null },
]

/** Embeddings have metrics of their own, and none of the others. */
function nextCalls (meter: Meter): Write {
  const writes = [times(meter, nextMetrics), nextTokens(meter)]
  const embeddings = nextEmbeddingCalls(meter)
  return (llm, shared, error) => {
    for (const write of llm.endpoint.operation === 'embeddings' ? [embeddings] : writes) write(llm, shared, error)
  }
}

function nextEmbeddingCalls (meter: Meter): Write {
  const duration = secondsHistogram(meter, nextEmbeddings.duration)
  const input = tokenHistogram(meter, nextEmbeddings.inputPerOperation)
  return (llm, shared, error) => {
    duration.record(upstreamDurationOf(llm), error)
    if (llm.usage.tokens !== null) input.record(tokensOf(llm.usage.tokens, 'input'), shared)
  }
}

const modalityNames: ReadonlySet<string> = new Set(['text', 'image', 'audio'])

/** A call without usage adds 0 tokens of unknown modality, so that it appears at all. */
function nextTokens (meter: Meter): Write {
  const counters = nextCounters.map(({ name, ...rest }): NextCounter => ({
    ...rest, counter: meter.createCounter(name, { unit: '{token}' }),
  }))
  const input = tokenHistogram(meter, nextMetrics.inputPerOperation)
  const output = tokenHistogram(meter, nextMetrics.outputPerOperation)
  return (llm, shared, error) => {
    for (const { counter, tokens, direction } of counters) {
      let rest = llm.usage.tokens === null ? 0 : tokens(llm.usage.tokens)
      for (const view of llm.usage.modalities ?? []) {
        if (view.direction !== direction || !modalityNames.has(view.modality)) continue
        const amount = Math.min(view.tokens, rest)
        counter.add(amount, { ...shared, [nextAttributes.modality]: view.modality })
        rest -= amount
      }
      counter.add(rest, { ...shared, [nextAttributes.modality]: 'unknown' })
    }
    if (llm.usage.tokens === null) return
    input.record(tokensOf(llm.usage.tokens, 'input'), error)
    output.record(tokensOf(llm.usage.tokens, 'output'), error)
  }
}
