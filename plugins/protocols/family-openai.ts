/** OpenAI conventions: `Authorization: Bearer`, `/v1`, `{error:{message,type,param,code}}` with all four keys present. */
import type { ErrorFacts, ErrorKind, Family, StreamFacts } from './types.js'

// Types as in the public API; SDKs choose the class by status and show `type` and `code`.
const types: Readonly<Record<ErrorKind, string>> = {
  invalid_request: 'invalid_request_error',
  // The public API says `invalid_request_error` here too, but wrappers of many providers then take a missing key for a bad body.
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
  // No `choices`: clients that know no errors would take it for one more chunk, and the rest for a clean end. And the error first, for
  // go-openai finds it by `data: {"error":` alone.
  const chunk = id === null ? {} : { id, object: 'chat.completion.chunk', created: createdAt, model }
  return `data: ${JSON.stringify({ ...errorBody(facts), ...chunk })}\n\n`
}

export const openai: Family = {
  name: 'openai',
  provider: 'openai',
  prefix: 'v1',
  credentials: [
    { in: 'header', name: 'authorization', scheme: 'bearer' },
    { in: 'header', name: 'api-key', optional: 'api-key' },
  ],
  // As compatible servers and their API management accept it.
  queryCarriers: ['api_key', 'apikey', 'subscription_key'],
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
  streamError: failedChunk,
  skipsComments: true,
  baseUrl: (origin) => `${origin}/v1`,
}
