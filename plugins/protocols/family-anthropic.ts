/** Anthropic conventions: `x-api-key` or Bearer, a dated version header, `{type:'error',error:{type,message},request_id}`. */
import type { ErrorFacts, ErrorKind, Family } from './types.js'

const types: Readonly<Record<ErrorKind, string>> = {
  invalid_request: 'invalid_request_error',
  authentication: 'authentication_error',
  permission: 'permission_error',
  billing: 'billing_error',
  not_found: 'not_found_error',
  too_large: 'request_too_large',
  rate_limit: 'rate_limit_error',
  internal: 'api_error',
  overloaded: 'overloaded_error',
  timeout: 'timeout_error',
}

function errorBody (facts: ErrorFacts): Record<string, unknown> {
  return {
    type: 'error',
    error: { type: types[facts.kind], message: facts.message, details: { error_code: facts.code } },
    request_id: facts.requestId,
  }
}

export const anthropic: Family = {
  name: 'anthropic',
  provider: 'anthropic',
  prefix: 'v1',
  credentials: [
    { in: 'header', name: 'x-api-key' },
    { in: 'header', name: 'authorization', scheme: 'bearer' },
  ],
  queryCarriers: [],
  modelPrefix: '',
  // Current official SDKs send both, in the old and the new major version.
  versionHeader: { name: 'anthropic-version', accepted: ['2023-06-01', '2026-10-21'] },
  upstreamHeader: (secret) => ['x-api-key', secret],
  errorBody,
  // https://docs.anthropic.com/en/api/rate-limits
  limitHeaders: ({ limit, allowed, free, resetMs }) => ({
    [`anthropic-ratelimit-${limit}-limit`]: String(allowed),
    [`anthropic-ratelimit-${limit}-remaining`]: String(free),
    [`anthropic-ratelimit-${limit}-reset`]: new Date(Date.now() + resetMs).toISOString(),
  }),
  streamError: (facts) => `event: error\ndata: ${JSON.stringify(errorBody(facts))}\n\n`,
  skipsComments: true,
  baseUrl: (origin) => origin,
}
