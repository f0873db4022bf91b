/** Gemini conventions: `x-goog-api-key` or `?key=`, `/v1beta`, `{error:{code,message,status,details}}` (google.rpc.Status). */
import type { ErrorFacts, ErrorKind, Family } from './types.js'

const statuses: Readonly<Record<ErrorKind, string>> = {
  invalid_request: 'INVALID_ARGUMENT',
  authentication: 'UNAUTHENTICATED',
  permission: 'PERMISSION_DENIED',
  billing: 'PERMISSION_DENIED',
  not_found: 'NOT_FOUND',
  too_large: 'INVALID_ARGUMENT',
  rate_limit: 'RESOURCE_EXHAUSTED',
  internal: 'INTERNAL',
  overloaded: 'UNAVAILABLE',
  timeout: 'DEADLINE_EXCEEDED',
}

function details (facts: ErrorFacts): unknown[] {
  const info = {
    '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
    reason: facts.code.toUpperCase(),
    domain: 'llm-gateway',
    metadata: { request_id: facts.requestId },
  }
  const known: unknown[] = [info]
  if (facts.retryAfterMs) {
    known.push({ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${Math.ceil(facts.retryAfterMs / 1_000)}s` })
  }
  if (facts.param !== null) {
    const violation = { field: facts.param, description: facts.message }
    known.push({ '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: [violation] })
  }
  return known
}

function errorBody (facts: ErrorFacts): Record<string, unknown> {
  // Google has one word for 429, also where a balance is spent.
  const status = statuses[facts.status === 429 ? 'rate_limit' : facts.kind]
  return { error: { code: facts.status, message: facts.message, status, details: details(facts) } }
}

export const gemini: Family = {
  name: 'gemini',
  provider: 'gcp.gemini',
  prefix: 'v1beta',
  credentials: [
    { in: 'header', name: 'x-goog-api-key' },
    { in: 'query', name: 'key' },
    { in: 'header', name: 'authorization', scheme: 'bearer', optional: 'gemini-bearer' },
  ],
  // System parameters (https://cloud.google.com/apis/docs/system-parameters), each of which may begin with `$`. The last three carry whole
  // headers, and another method and body type than were decided about.
  queryCarriers: ['key', 'access_token', 'oauth_token', 'bearer_token', 'httpheaders', 'httpmethod', 'ct'],
  modelPrefix: 'models/',
  versionHeader: null,
  upstreamHeader: (secret) => ['x-goog-api-key', secret],
  errorBody,
  // Clients read the RetryInfo of the envelope instead.
  limitHeaders: () => ({}),
  // No `event:` line: the official client drops such events silently. Clients that read no error (@google/genai 1, @google/generative-ai)
  // fail on the comment, because it has no end; others skip it.
  streamError: (facts) => `data: ${JSON.stringify(errorBody(facts))}\n\n: ${facts.message}`,
  // The official client for Python (google-genai 3.6) takes a comment for JSON.
  skipsComments: false,
  baseUrl: (origin) => origin,
}
