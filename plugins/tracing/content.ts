/**
 * Prompts and replies as attributes of a span, off unless the environment says so: whether personal data goes to a telemetry backend is the
 * operator's decision, made by the variable of all GenAI instrumentations, `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`. Only
 * texts, of limited length, without the caller's and the upstream's key.
 */
import type { Span } from '@opentelemetry/api'
import { isEventStream } from '../core/reply/event-stream.js'
import { attributes } from '../core/telemetry/genai.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { OpenTap, ReplyTap } from '../core/types.js'
import type { Upstream } from '../core/upstream/upstream.js'
import { inputMessages } from './input-messages.js'
import { ReplyText } from './reply-text.js'
import { TextBudget } from './text-budget.js'

/** Maximum text of one direction in one span, in UTF-16 units. */
const maxTextLength = 16 * 1024
/** Maximum texts of a request in one span: a batch of embeddings has thousands of few letters. */
const maxTexts = 1_000

/** Values that ask for content in spans; `true` is the old spelling. `EVENT_ONLY` asks for log events, which are not made here. */
const inSpans: ReadonlySet<string> = new Set(['span_only', 'span_and_event', 'true'])

export function capturesContent (env: Readonly<Record<string, string | undefined>>): boolean {
  return inSpans.has(String(env['OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT']).trim().toLowerCase())
}

type Hide = (text: string) => string

/** Minimum length at which the beginning of a key is recognised at the end of a cut text. */
const shortestPiece = 6

/** Keys must not be captured; callers paste theirs into prompts, and models repeat them. */
function hideKeys (llm: ModelCall, upstreams: readonly Upstream[]): Hide {
  const keys = [llm.auth.secret, ...upstreams.map(({ secret }) => secret.known())].filter((key) => key !== null)
  return (text) => keys.reduce((rest, key) => withoutBeginning(rest.replaceAll(key, '[key]'), key), text)
}

function withoutBeginning (text: string, key: string): string {
  const piece = key.slice(0, shortestPiece)
  // Trying each length of a long key at each of thousands of texts would take seconds.
  let at = text.length - key.length
  while ((at = text.indexOf(piece, at + 1)) >= 0) if (key.startsWith(text.slice(at))) return text.slice(0, at)
  return text
}

/** Adds the caller's messages to the span, and the model's answer when the reply ends. Call it before the request is sent. */
export function captureContent (span: Span, llm: ModelCall, upstreams: readonly Upstream[]): void {
  const hide = hideKeys(llm, upstreams)
  const budget = new TextBudget(maxTextLength, maxTexts)
  const messages = inputMessages(llm.endpoint.text, llm.body.json, (text) => budget.take(hide(text)))
  if (messages.length > 0) span.setAttribute(attributes.inputMessages, JSON.stringify(messages))
  if (budget.truncated) span.setAttribute('llm_gateway.input_truncated', true)
  const { openTap } = llm
  if (openTap !== null) llm.openTap = listenIn(span, llm, hide, openTap)
}

function listenIn (span: Span, llm: ModelCall, hide: Hide, openTap: OpenTap): OpenTap {
  return (statusCode, headers) => {
    const tap = openTap(statusCode, headers)
    const rules = llm.endpoint.text
    // A compressed reply would have to be decompressed twice.
    if (tap === null || rules === null || headers['content-encoding'] !== undefined) return tap
    const budget = new TextBudget(maxTextLength)
    const reply = new ReplyText(rules.output, budget, isEventStream(headers))
    const tell = (): void => {
      reply.end()
      if (reply.text !== '') span.setAttribute(attributes.outputMessages, JSON.stringify([outputMessage(hide(reply.text), llm)]))
      if (budget.truncated) span.setAttribute('llm_gateway.output_truncated', true)
    }
    return listening(tap, reply, tell)
  }
}

function outputMessage (content: string, { usage: { finishReason } }: ModelCall): Record<string, unknown> {
  return { role: 'assistant', parts: [{ type: 'text', content }], ...finishReason !== null && { finish_reason: finishReason } }
}

/** The same tap, whose reply is read for its text, too. `tell`: called once it is over. */
function listening (tap: ReplyTap, reply: ReplyText, tell: () => void): ReplyTap {
  return {
    get complete () { return tap.complete },
    get lastEventSeen () { return tap.lastEventSeen },
    get failed () { return tap.failed },
    get whole () { return tap.whole },
    get streamFacts () { return tap.streamFacts },
    push: (chunk) => {
      reply.push(chunk)
      return tap.push(chunk)
    },
    end: () => {
      const rest = tap.end()
      tell()
      return rest
    },
    abort: (side) => {
      tap.abort(side)
      tell()
    },
  }
}
