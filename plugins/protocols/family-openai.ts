/** OpenAI conventions: `Authorization: Bearer`, `/v1`, `{error:{message,type,param,code}}` with all four keys present. */
import type { ErrorFacts, ErrorKind, Family, StreamFacts } from './types.js'

// Types as the public API uses them; SDKs pick the class by status and show `type` and `code`.
const types: Readonly<Record<ErrorKind, string>> = {
  invalid_request: 'invalid_request_error',
  // The public API says `invalid_request_error` here too; wrappers of many providers then take a missing key for a bad body.
  authentication: 'authentication_error',
  permission: 'invalid_request_error',
  billing: 'insufficient_quota',
  not_found: 'invalid_request_error',
  too_large: 'invalid_request_error',
  rate_limit: 'rate_limit_error',
  internal: 'server_error',
  overloaded: 'server_error',
  timeout: 'server_error',
}

function errorObject (facts: ErrorFacts): Record<string, unknown> {
  return { message: facts.message, type: types[facts.kind], param: facts.param, code: facts.code }
}

function errorBody (facts: ErrorFacts): Record<string, unknown> {
  return { error: errorObject(facts) }
}

function failedChunk (facts: ErrorFacts, { id, model, createdAt }: StreamFacts): string {
  // No `choices`: clients that know no errors would take it for one chunk more, and what follows for a clean end.
  const chunk = id === null ? {} : { id, object: 'chat.completion.chunk', created: createdAt, model }
  return `data: ${JSON.stringify({ ...chunk, ...errorBody(facts) })}\n\n`
}

/**
 * `response.failed` is what agents show the message of. Typed clients want every field that a response must have, and the same
 * id as before; those of them that know no failed response (Go) raise what stands in an `error` beside it.
 */
function failedResponse (facts: ErrorFacts, told: StreamFacts): string {
  const failed = {
    type: 'response.failed',
    sequence_number: told.sequence === null ? 0 : told.sequence + 1,
    response: {
      id: told.id ?? facts.requestId,
      object: 'response',
      created_at: told.createdAt ?? Math.floor(Date.now() / 1_000),
      status: 'failed',
      error: { code: facts.code, message: facts.message },
      incomplete_details: null,
      instructions: null,
      metadata: {},
      model: told.model ?? '',
      output: [],
      parallel_tool_calls: true,
      temperature: null,
      tool_choice: 'auto',
      tools: [],
      top_p: null,
      usage: null,
    },
    ...errorBody(facts),
  }
  return `event: response.failed\ndata: ${JSON.stringify(failed)}\n\n`
}

export const openai: Family = {
  name: 'openai',
  provider: 'openai',
  prefix: 'v1',
  credentials: [
    { in: 'header', name: 'authorization', scheme: 'bearer' },
    { in: 'header', name: 'api-key', optional: 'api-key' },
  ],
  // As compatible servers and their API management take it.
  queryCarriers: ['api_key', 'apikey', 'subscription_key'],
  hiding: null,
  modelPrefix: '',
  versionHeader: null,
  upstreamHeader: (secret) => ['authorization', `Bearer ${secret}`],
  errorBody,
  // https://platform.openai.com/docs/guides/rate-limits
  limitHeaders: ({ limit, allowed, free, resetMs }) => ({
    [`x-ratelimit-limit-${limit}`]: String(allowed),
    [`x-ratelimit-remaining-${limit}`]: String(free),
    [`x-ratelimit-reset-${limit}`]: `${Math.ceil(resetMs / 1_000)}s`,
  }),
  streamError: (facts, protocol, told) => protocol === 'responses' ? failedResponse(facts, told) : failedChunk(facts, told),
  baseUrl: (origin) => `${origin}/v1`,
}
