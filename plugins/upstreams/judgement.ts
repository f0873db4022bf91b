import { unescape } from 'node:querystring'
import { GatewayError } from '../core/errors/gateway-error.js'
import type { ModelCall } from '../core/call/model-call.js'
import { mayNameAccount, namesAccount, namesRequest, waitMsOf } from '../protocols/refusals.js'
import type { Failure, KeptReply } from '../core/upstream/upstream.js'

/** How an attempt ended, as the metrics, the log line and the span tell it. */
export type AttemptResult =
  | 'ok' | 'client_error' | 'rate_limited' | 'overloaded' | 'server_error' | 'credential' | 'connect' | 'reset' | 'timeout' | 'invalid'
  | 'first_event' | 'left' | 'queue'

/** `nobody_asked`: it was never sent, and tells nothing of anybody. */
export type Blame = 'upstream' | 'credential' | 'credential_model' | 'account_model' | 'nobody_asked'

/** What a failed attempt means for its upstream, and for another attempt. */
export interface Judgement {
  readonly result: AttemptResult
  /** Under which of a pool's causes another member is asked; null for none. `credential`: always. */
  readonly cause: string | null
  /** What is out for a while: the upstream, its credential, its credential for this model, its account for this model, or nothing. */
  readonly blames: Blame | null
  /** After how long the upstream says that it may be asked again. */
  readonly waitMs: number | null
}

const busy: ReadonlySet<number> = new Set([429, 503, 529])
const nothing = { cause: null, blames: null, waitMs: null }

export const well: Judgement = { ...nothing, result: 'ok' }
const refusing: Judgement = { ...nothing, result: 'client_error' }
const noText = Buffer.alloc(0)

/** True for replies whose body has a say in what becomes of them. */
export function needsBody (status: number): boolean {
  return status === 400 || status === 401 || status === 402 || status === 403 || status === 429 || status >= 500
}

/** What a reply that was passed on says of its upstream, as far as its head tells. */
export function passedOn (status: number, headers: KeptReply['headers']): Judgement {
  return status < 400 ? well : judgeStatus(status, headers, noText, Date.now()) ?? refusing
}

export function judge (failure: Failure, ownCredential: boolean, nowMs: number, llm: ModelCall): Judgement {
  if (failure.kind === 'transport') return judgeTransport(failure.error, failure.sent)
  if (failure.kind === 'head') return { result: 'first_event', cause: 'first_event', blames: 'upstream', waitMs: null }
  const { reply } = failure
  // Whom a refusal concerns would stand in what is missing; a limit or an overload has said so.
  if (reply.error !== null && !busy.has(reply.status)) return judgeTransport(reply.error, true)
  return judgeReply(reply, ownCredential, nowMs, llm)
}

const timeouts: ReadonlySet<unknown> = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT'])

/** Before anything was sent, no provider has done anything. After that, it may have. */
function judgeTransport (error: Error, sent: boolean): Judgement {
  // A queue of ours that is full, or too slow, says nothing of the upstream.
  if (error instanceof GatewayError) return { result: 'queue', cause: 'connect', blames: 'nobody_asked', waitMs: null }
  if (!sent) return { result: 'connect', cause: 'connect', blames: 'upstream', waitMs: null }
  if (error.name === 'HTTPParserError') return { ...nothing, result: 'invalid', blames: 'upstream' }
  const result = timeouts.has(Reflect.get(error, 'code')) ? 'timeout' : 'reset'
  return { result, cause: result, blames: 'upstream', waitMs: null }
}

function judgeReply ({ status, headers, text }: KeptReply, ownCredential: boolean, nowMs: number, llm: ModelCall): Judgement {
  if (ownCredential && mayNameAccount(status) && namesAccount(text, () => saidIn(llm))) {
    return { result: 'credential', cause: 'credential', blames: 'credential', waitMs: null }
  }
  const judged = judgeStatus(status, headers, text, nowMs)
  if (judged !== null) return judged
  const isOwn = namesRequest(text)
  // What would pay for less goes on for others.
  if (status === 402 && ownCredential && isOwn) return { ...nothing, result: 'credential', cause: 'credential' }
  if (!ownCredential || status === 400 || status === 404 || isOwn) return { ...nothing, result: 'client_error' }
  return { result: 'credential', cause: 'credential', blames: status === 403 ? 'credential_model' : 'credential', waitMs: null }
}

/** A limit, or a failure of the upstream's own; null for anything else. */
function judgeStatus (status: number, headers: KeptReply['headers'], text: Buffer, nowMs: number): Judgement | null {
  if (status === 429) {
    const blames = namesRequest(text) ? null : 'account_model'
    return { result: 'rate_limited', cause: '429', blames, waitMs: waitMsOf(headers, text, nowMs) }
  }
  if (status < 500) return null
  if (status !== 503 && status !== 529) return { result: 'server_error', cause: String(status), blames: 'upstream', waitMs: null }
  return { result: 'overloaded', cause: String(status), blames: 'upstream', waitMs: waitMsOf(headers, text, nowMs) }
}

/** A large body as one text, and in lower case once more, takes twice the time and three times its memory. */
const pieceBytes = 64 * 1024
/** More than any words that are looked for. */
const overlapBytes = 64

/** All of a request that its provider may repeat. */
function * saidIn ({ url, request, body: { bytes } }: ModelCall): Iterable<string> {
  yield [unescape(url.replaceAll('+', ' ')), ...Object.entries(Object(request?.headers))].join('\n')
  const sent = bytes ?? noText
  for (let at = 0; at < sent.length; at += pieceBytes) yield sent.toString('latin1', Math.max(0, at - overlapBytes), at + pieceBytes)
}

/**
 * The less the better for the caller: a limit tells it when to come again, an overload that it may, anything else nothing. One that broke
 * off cannot be passed on.
 */
export function usefulness ({ status, headers, text, error }: KeptReply, nowMs: number): number {
  if (error !== null) return 4e15
  if (status === 429) return waitMsOf(headers, text, nowMs) ?? 1e15
  if (status >= 500 || status < 400) return 2e15
  return 3e15
}

/** What is wrong with the request is the answer to it, whatever was wrong with other upstreams. */
export function moreUseful (best: KeptReply | null, reply: KeptReply, result: AttemptResult): KeptReply {
  const now = Date.now()
  return result === 'client_error' || best === null || usefulness(reply, now) < usefulness(best, now) ? reply : best
}
