import { unescape } from 'node:querystring'
import { GatewayError } from '../core/errors/gateway-error.js'
import type { ModelCall } from '../core/call/model-call.js'
import { redirections } from '../core/call/outcome.js'
import { payerHeaders } from '../protocols/index.js'
import { mayNameAccount, namesAccount, namesRequest, waitMsOf } from '../protocols/refusals.js'
import type { Failure, KeptReply, Upstream } from '../core/upstream/upstream.js'

/** How an attempt ended, as reported in the metrics, the log line and the span. */
export const attemptResults = [
  'ok', 'client_error', 'rate_limited', 'overloaded', 'server_error', 'credential', 'connect', 'reset', 'timeout', 'invalid',
  'first_event', 'left', 'queue',
] as const

export type AttemptResult = typeof attemptResults[number]

/** What is at fault. `nobody_asked`: the request was never sent, so it says nothing about anybody. */
type Blame = 'upstream' | 'credential' | 'credential_model' | 'account_model' | 'nobody_asked'

/** What a failed attempt means for its upstream, and for another attempt. */
export interface Judgement {
  readonly result: AttemptResult
  /** The cause, as in a pool's `retryOn`, for which another member is asked; null for none. `credential`: always. */
  readonly cause: string | null
  /** What gets no requests for a while: the upstream, its credential (for this model), its account for this model, or nothing. */
  readonly blames: Blame | null
  /** Milliseconds after which the upstream says it may be asked again. */
  readonly waitMs: number | null
}

const busy: ReadonlySet<number> = new Set([429, 503, 529])
const nothing = { cause: null, blames: null, waitMs: null }

export const well: Judgement = { ...nothing, result: 'ok' }
const refusing: Judgement = { ...nothing, result: 'client_error' }
const noText = Buffer.alloc(0)

/** True for statuses whose reply is not passed on before it is judged. */
export function needsBody (status: number): boolean {
  return redirections.has(status) || status === 400 || status === 401 || status === 402 || status === 403 || status === 429 || status >= 500
}

/** What the head of a reply that is passed on says about its upstream. */
export function passedOn (status: number, headers: KeptReply['headers']): Judgement {
  return status < 300 ? well : judgeStatus(status, headers, noText, Date.now()) ?? (status < 400 ? well : refusing)
}

export function judge (failure: Failure, ownCredential: boolean, nowMs: number, llm: ModelCall): Judgement {
  if (failure.kind === 'transport') return judgeTransport(failure.error, failure.sent)
  if (failure.kind === 'head') return { result: 'first_event', cause: 'first_event', blames: 'upstream', waitMs: null }
  const { reply } = failure
  // A body that broke off may lack whom the refusal concerns. A limit or an overload is known by its status.
  if (reply.error !== null && !busy.has(reply.status)) return judgeTransport(reply.error, true)
  return judgeReply(reply, ownCredential, nowMs, llm)
}

const timeouts: ReadonlySet<unknown> = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT'])

/** If nothing was sent, no provider has done work. After that, it may have. */
function judgeTransport (error: Error, sent: boolean): Judgement {
  // Our own queue was full or too slow, which says nothing about the upstream.
  if (error instanceof GatewayError) return { result: 'queue', cause: 'connect', blames: 'nobody_asked', waitMs: null }
  if (!sent) return { result: 'connect', cause: 'connect', blames: 'upstream', waitMs: null }
  if (error.name === 'HTTPParserError') return { ...nothing, result: 'invalid', blames: 'upstream' }
  const result = timeouts.has(Reflect.get(error, 'code')) ? 'timeout' : 'reset'
  return { result, cause: result, blames: 'upstream', waitMs: null }
}

function judgeReply ({ status, headers, text, upstream }: KeptReply, ownCredential: boolean, nowMs: number, llm: ModelCall): Judgement {
  if (ownCredential && mayNameAccount(status) && namesAccount(text, () => saidIn(llm))) {
    return { result: 'credential', cause: 'credential', blames: 'credential', waitMs: null }
  }
  const judged = judgeStatus(status, headers, text, nowMs)
  if (judged !== null) return judged
  const isOwn = namesRequest(text)
  if (!ownCredential || status === 400 || status === 404 || (isOwn && status !== 402)) return { ...nothing, result: 'client_error' }
  // The account can still pay for smaller requests, and for callers that name no other payer. A 401 is about the key, whoever pays.
  if (isOwn || (status !== 401 && choosesPayer(llm, upstream))) return { ...nothing, result: 'credential', cause: 'credential' }
  return { result: 'credential', cause: 'credential', blames: status === 403 ? 'credential_model' : 'credential', waitMs: null }
}

function choosesPayer ({ request }: ModelCall, { headers }: Upstream): boolean {
  return payerHeaders.some((name) => name in Object(request?.headers) && !headers.some(([own]) => own === name))
}

/** A limit or a failure of the upstream; null for any other status. */
function judgeStatus (status: number, headers: KeptReply['headers'], text: Buffer, nowMs: number): Judgement | null {
  if (status === 429) {
    const blames = namesRequest(text) ? null : 'account_model'
    return { result: 'rate_limited', cause: '429', blames, waitMs: waitMsOf(headers, text, nowMs) }
  }
  if (redirections.has(status)) return { result: 'invalid', cause: 'connect', blames: 'upstream', waitMs: null }
  if (status < 500) return null
  if (status !== 503 && status !== 529) return { result: 'server_error', cause: String(status), blames: 'upstream', waitMs: null }
  return { result: 'overloaded', cause: String(status), blames: 'upstream', waitMs: waitMsOf(headers, text, nowMs) }
}

/** A large body is searched in pieces: as one text, and again in lower case, it takes twice the time and three times the memory. */
const pieceBytes = 64 * 1024
/** Longer than any words that are looked for. */
const overlapBytes = 64

/** Everything in a request that its provider may repeat in an error. */
function * saidIn ({ url, request, body: { bytes } }: ModelCall): Iterable<string> {
  yield [unescape(url.replaceAll('+', ' ')), ...Object.entries(Object(request?.headers))].join('\n')
  const sent = bytes ?? noText
  for (let at = 0; at < sent.length; at += pieceBytes) yield sent.toString('latin1', Math.max(0, at - overlapBytes), at + pieceBytes)
}

/**
 * Lower is more useful to the caller: a limit says when to come again, an overload that coming again may help, anything else nothing. One
 * that broke off comes last, because it cannot be passed on.
 */
export function usefulness ({ status, headers, text, error }: KeptReply, nowMs: number): number {
  if (error !== null) return 4e15
  if (status === 429) return waitMsOf(headers, text, nowMs) ?? 1e15
  if (status >= 500 || status < 400) return 2e15
  return 3e15
}

/** An error in the request itself is the answer, whatever was wrong with other upstreams. */
export function moreUseful (best: KeptReply | null, reply: KeptReply, result: AttemptResult): KeptReply {
  const now = Date.now()
  return result === 'client_error' || best === null || usefulness(reply, now) < usefulness(best, now) ? reply : best
}
