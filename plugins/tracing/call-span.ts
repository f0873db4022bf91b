import type { Attributes, Context, Span, Tracer } from '@opentelemetry/api'
import { attributes } from '../core/telemetry/genai.js'
import { cacheWritten, errorTypeOf, succeeded, tokensOf, upstreamFirstChunkOf } from '../core/call/measures.js'
import { otelApi } from '../core/telemetry/otel-api.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { Upstream } from '../core/upstream/upstream.js'
import { requestAttributes } from './request-attributes.js'

/** Many backends make statistics of span names: only a plain model name may be part of one. */
const plausible = /^[A-Za-z0-9._:/@-]{1,64}$/

/** Starts the span of one model call, as a client of its provider. Attributes that sampling may need are set at the start. */
export function startCallSpan (tracer: Tracer, llm: ModelCall, upstreams: readonly Upstream[], parent: Context): Span {
  const { operation, family } = llm.endpoint
  const start: Attributes = { [attributes.operation]: operation, [attributes.provider]: family.provider }
  if (llm.model !== null) start[attributes.requestModel] = llm.model.slice(0, 128)
  const [only, ...others] = upstreams
  // Which one of several upstreams it is, is known from the attempts.
  if (only !== undefined && others.length === 0) Object.assign(start, serverAttributes(only))
  const name = llm.model !== null && plausible.test(llm.model) ? `${operation} ${llm.model}` : operation
  const span = tracer.startSpan(name, { kind: otelApi().SpanKind.CLIENT, attributes: start }, parent)
  if (!span.isRecording()) return span
  span.setAttributes({
    'llm_gateway.protocol': llm.protocol, 'llm_gateway.request_id': llm.id, ...requestAttributes(llm.endpoint, llm.body.json),
  })
  if (llm.stream) span.setAttribute(attributes.stream, true)
  if (llm.auth.group !== null) span.setAttribute('llm_gateway.group', llm.auth.group.id)
  return span
}

const addresses = new WeakMap<Upstream, Attributes>()

function serverAttributes (upstream: Upstream): Attributes {
  const known = addresses.get(upstream)
  if (known !== undefined) return known
  const { hostname, port, protocol } = new URL(upstream.origin)
  const standard = protocol === 'https:' ? 443 : 80
  const found = { [attributes.serverAddress]: hostname, [attributes.serverPort]: port === '' ? standard : Number(port) }
  addresses.set(upstream, found)
  return found
}

/** Ends the span of a settled request, after its last byte, an abort or a failure. */
export function endCallSpan (span: Span, llm: ModelCall): void {
  span.setAttributes({
    'llm_gateway.outcome': String(llm.outcome), ...replyAttributes(llm), ...usageAttributes(llm), ...costAttributes(llm),
  })
  const errorType = errorTypeOf(llm)
  if (errorType !== null) {
    span.setAttribute(attributes.errorType, errorType)
    // If the caller hung up, the call did not fail.
    if (llm.outcome !== 'client_abort') span.setStatus({ code: otelApi().SpanStatusCode.ERROR, message: errorType })
  }
  for (const { upstream, result, status, durationMs } of llm.routing.attempts ?? []) {
    span.addEvent('llm_gateway.attempt', {
      'llm_gateway.upstream': upstream, 'llm_gateway.result': result, 'llm_gateway.status': status, 'llm_gateway.duration_ms': durationMs,
    })
  }
  if (llm.routing.upstream !== null) span.setAttribute('llm_gateway.upstream', llm.routing.upstream)
  // A name that no provider answered may be invented by a caller.
  if (!succeeded(llm)) span.updateName(llm.endpoint.operation)
  span.end()
}

function replyAttributes (llm: ModelCall): Attributes {
  const found: Attributes = {}
  if (llm.usage.responseId !== null) found[attributes.responseId] = llm.usage.responseId
  if (llm.usage.responseModel !== null) found[attributes.responseModel] = llm.usage.responseModel
  if (llm.usage.finishReason !== null) found[attributes.finishReasons] = [llm.usage.finishReason]
  const firstChunk = upstreamFirstChunkOf(llm)
  if (firstChunk !== null) found[attributes.timeToFirstChunk] = firstChunk
  return found
}

/** The exact decimal text: a number would be rounded. */
function costAttributes ({ cost, usage: { served } }: ModelCall): Attributes {
  const found: Attributes = {}
  if (served !== null && served.tier !== null) found['llm_gateway.service_tier'] = served.tier
  const amount = cost?.exact.amount ?? null
  return amount === null ? found : { ...found, 'llm_gateway.cost': amount, 'llm_gateway.currency': cost?.currency }
}

/** Input includes cached tokens and output includes reasoning, as the conventions require; the parts follow. */
function usageAttributes ({ usage: { tokens: usage } }: ModelCall): Attributes {
  if (usage === null) return {}
  return {
    [attributes.inputTokens]: tokensOf(usage, 'input'),
    [attributes.outputTokens]: tokensOf(usage, 'output'),
    [attributes.cacheReadTokens]: usage.cache_read,
    [attributes.cacheWriteTokens]: cacheWritten(usage),
    [attributes.reasoningTokens]: usage.reasoning,
  }
}
