import type { Family } from '../protocols/index.js'
import type { GatewayError } from '../core/errors/gateway-error.js'
import { durationOf, firstChunkOf, overheadOf } from '../core/call/measures.js'
import { labelsOf } from '../core/config/labels.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { AttemptRecord } from '../core/types.js'

/** No known name or id is longer. */
const maxLength = 128

/**
 * The fields of a settled request's line, under `llm`; those that do not apply are undefined and so not written. Only ids, names, numbers
 * and fixed values: no URL, no header, no content, no credential and nothing made from one. `usage` has the disjoint leaves.
 */
export function requestLine (llm: ModelCall): Record<string, unknown> {
  const { endpoint } = llm
  // One literal: an object merged from several costs ten times as much.
  return {
    id: llm.id,
    protocol: endpoint.protocol,
    endpoint: endpoint.id,
    operation: endpoint.operation,
    provider: endpoint.family.provider,
    group: llm.auth.group?.id,
    key_id: llm.auth.key?.id,
    model: llm.model?.slice(0, maxLength),
    stream: llm.stream,
    path_repair: llm.repair ?? undefined,
    outcome: llm.outcome,
    status: llm.status,
    error: llm.errorCode ?? undefined,
    aborted_by: llm.abortedBy ?? undefined,
    upstream: llm.routing.upstream ?? undefined,
    upstream_model: llm.routing.sentModel?.slice(0, maxLength),
    attempts: llm.routing.attempts !== null && llm.routing.attempts.length > 1 ? llm.routing.attempts.map(attemptLine) : undefined,
    upstream_status: llm.upstreamReply.status === 0 ? undefined : llm.upstreamReply.status,
    upstream_request_id: llm.upstreamReply.requestId?.slice(0, maxLength),
    response_model: llm.usage.responseModel?.slice(0, maxLength),
    finish_reason: llm.usage.finishReason ?? undefined,
    duration_ms: milliseconds(durationOf(llm)),
    ttfc_ms: milliseconds(firstChunkOf(llm)),
    overhead_ms: milliseconds(overheadOf(llm)),
    usage: llm.usage.tokens ?? undefined,
    usage_missing: llm.usage.missing ?? undefined,
    service_tier: llm.usage.served?.tier ?? undefined,
    cost: llm.cost?.exact.amount ?? undefined,
    currency: llm.cost?.currency,
    unpriced: llm.cost?.unpriced || undefined,
    labels: labelsOf(llm) ?? undefined,
    trace_id: llm.trace?.ids.traceId,
    span_id: llm.trace?.ids.spanId,
  }
}

/**
 * The line of a request that is refused for its path, which belongs to no endpoint. The path is left out, because it is the caller's own
 * text.
 */
export function refusedUrlLine (id: string, { provider }: Family, { outcome, statusCode, code }: GatewayError): Record<string, unknown> {
  return { id, provider, outcome, status: statusCode, error: code }
}

function attemptLine ({ upstream, result, status, durationMs }: AttemptRecord): Record<string, unknown> {
  return { upstream, result, status: status === 0 ? undefined : status, duration_ms: durationMs }
}

function milliseconds (seconds: number | null): number | undefined {
  return seconds === null ? undefined : Math.round(seconds * 1_000_000) / 1_000
}
