import type { FastifyRequest } from 'fastify'
import type { LlmRequest } from '../request.js'

/**
 * One line for each model request, when it is settled: who, what, how long, how many tokens. No URL, no credential, no
 * content. The caller's words (the model) are cut to a length that a log bears.
 */
export function logRequest (llm: LlmRequest, request: FastifyRequest): void {
  request.log.info({
    llm: {
      id: llm.id,
      protocol: llm.protocol,
      group: llm.group?.id,
      key: llm.key?.id,
      model: llm.model?.slice(0, 128),
      stream: llm.stream,
      outcome: llm.outcome,
      status: llm.status,
      error: llm.errorCode ?? undefined,
      upstream: llm.upstream ?? undefined,
      upstream_status: llm.upstreamStatus,
      upstream_request_id: llm.upstreamRequestId ?? undefined,
      duration_ms: Math.round(llm.endedAt - llm.startedAt),
      first_chunk_ms: llm.firstChunkAt === 0 ? undefined : Math.round(llm.firstChunkAt - llm.startedAt),
      usage: llm.usage ?? undefined,
      usage_missing: llm.usageMissing ?? undefined,
    },
  }, 'model request')
}
