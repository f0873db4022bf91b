import type { IncomingHttpHeaders } from 'node:http'
import { availableParallelism } from 'node:os'
import { extname } from 'node:path'
import { largeBytes } from '../core/body/collect-body.js'
import type { ModelCall } from '../core/call/model-call.js'
import { checkBody, type Findings } from './check-body.js'
import { readMediaType, type MediaType } from './media-type.js'
import type { Rules } from './options.js'
import type { Answer, Question } from './questions.js'
import { refused, BodyRefusal } from './body-refusal.js'
import { Threads } from './threads.js'

/** One core is left to the event loop. */
const maxThreads = Math.max(1, Math.min(availableParallelism() - 1, 4))
const idleMs = 10_000
const answerMs = 60_000
const maxWaitingBytes = 64 * 1024 * 1024

/**
 * Checks bodies and sets on their requests what is read from them: small bodies at once, large ones and those of many values in a thread.
 */
export class Checker {
  readonly threads: Threads<Answer>
  readonly #rules: Rules
  readonly #onTrouble: (error: unknown) => void
  readonly #wantsPlaces: () => boolean

  /** `onTrouble`: called with the reason if a body could not be checked. `wantsPlaces`: see `Question`. */
  constructor (rules: Rules, onTrouble: (error: unknown) => void, wantsPlaces = () => false) {
    const { data, bodies } = rules
    this.#rules = rules
    this.#onTrouble = onTrouble
    this.#wantsPlaces = wantsPlaces
    this.threads = new Threads({
      file: new URL(`./check-thread${extname(import.meta.url)}`, import.meta.url),
      data,
      maxThreads,
      // Twice what the most expensive values and the longest text need.
      heapMb: 256 + Math.ceil(bodies.maxValues / 2_500),
      idleMs,
      answerMs,
      maxWaitingBytes,
    })
  }

  /** Null if the body is valid. A promise if checking takes longer; the bytes are not on the request until then. */
  check (llm: ModelCall, headers: IncomingHttpHeaders, bytes: Buffer): BodyRefusal | null | Promise<BodyRefusal | null> {
    const type = readMediaType(llm.endpoint, headers)
    if (type instanceof BodyRefusal) return type
    if (bytes.length > largeBytes) return this.#ask(llm, type, bytes)
    const { here, bodies } = this.#rules
    const verdict = checkBody(llm.endpoint, type, bytes, here)
    if (!(verdict instanceof BodyRefusal)) return passed(llm, verdict)
    return verdict.keyword === 'values' && bodies.maxValues > here.maxValues ? this.#ask(llm, type, bytes) : verdict
  }

  async #ask (llm: ModelCall, type: MediaType, given: Buffer): Promise<BodyRefusal | null> {
    const bytes = ownBytes(given)
    const question: Question = { endpoint: llm.endpoint.id, type, bytes, wantsPlaces: this.#wantsPlaces() }
    // The thread owns it now.
    llm.body.bytes = null
    try {
      const answer = await this.threads.ask(question, bytes.buffer, () => !llm.settled)
      return answer === null ? refused('unchecked', 'request_aborted') : answered(llm, answer)
    } catch (error) {
      this.#onTrouble(error)
      return refused('unchecked', 'body_unchecked')
    }
  }
}

/** Memory that can be transferred: that of a small body may hold more than the body. */
function ownBytes (bytes: Buffer): Uint8Array<ArrayBuffer> {
  const { buffer, byteOffset, length } = bytes
  return length > largeBytes && buffer instanceof ArrayBuffer ? new Uint8Array(buffer, byteOffset, length) : new Uint8Array(bytes)
}

function answered (llm: ModelCall, { bytes, verdict }: Answer): BodyRefusal | null {
  llm.body.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  return 'keyword' in verdict ? new BodyRefusal(verdict) : passed(llm, verdict)
}

/** Values from the path stay if the body has none. */
function passed (llm: ModelCall, { json, model, modelAt, modelPlaces, otherModels, substitutes, stream }: Findings): null {
  llm.body.json = json
  llm.body.modelAt = modelAt ?? null
  llm.body.modelPlaces = modelPlaces ?? null
  llm.body.otherModels = otherModels
  llm.body.substitutes = substitutes
  if (model !== null) llm.model = model
  if (llm.endpoint.streams === 'body') llm.stream = stream
  return null
}
