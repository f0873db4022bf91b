/** OpenAI conventions: `Authorization: Bearer`, `/v1`, `{error:{message,type,param,code}}` with all four keys present. */
import type { ErrorFacts, ErrorKind, Family } from './types.js'

// Types as the public API uses them; SDKs pick the class by status and show `type` and `code` (facts/protocols.md 5).
const types: Readonly<Record<ErrorKind, string>> = {
  invalid_request: 'invalid_request_error',
  authentication: 'invalid_request_error',
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
  versionHeader: null,
  upstreamHeader: (secret) => ['authorization', `Bearer ${secret}`],
  errorBody,
  // https://platform.openai.com/docs/guides/rate-limits
  limitHeaders: ({ limit, allowed, free, resetMs }) => ({
    [`x-ratelimit-limit-${limit}`]: String(allowed),
    [`x-ratelimit-remaining-${limit}`]: String(free),
    [`x-ratelimit-reset-${limit}`]: `${Math.ceil(resetMs / 1_000)}s`,
  }),
  streamError (facts, protocol) {
    if (protocol !== 'responses') return `data: ${JSON.stringify(errorBody(facts))}\n\n`
    // Only `response.failed` shows its message in every known client of typed events (facts/protocols.md 5.3).
    const failed = {
      type: 'response.failed',
      response: { id: facts.requestId, object: 'response', status: 'failed', error: { code: facts.code, message: facts.message } },
    }
    return `event: response.failed\ndata: ${JSON.stringify(failed)}\n\n`
  },
  baseUrl: (origin) => `${origin}/v1`,
}
