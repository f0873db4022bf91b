import { isObject, valuesAt } from '../core/body/json-object.js'
import { parseJson } from '../core/body/parse-json.js'
import { tellsFailure } from '../core/upstream/tells-failure.js'
import type { StreamHead } from '../core/upstream/upstream.js'
import { plainReply, type UsageRules } from '../protocols/usage-rules.js'

/** At most this much of a preamble is held; then the stream is passed on, whatever it is. */
const maxEvents = 64
const maxBytes = 64 * 1024

/** A blank line, as the HTML standard has event streams (9.2). */
const blankLine = /\r\n\r\n|\n\n|\r\r/

type HeadEvent = 'preamble' | 'failed' | 'content'
type HeadRules = Pick<UsageRules, 'errors' | 'failed' | 'head' | 'ending'>

/** Reads a stream's first events until one of them has content or tells of a failure. */
export class EventHead implements StreamHead {
  readonly #rules: HeadRules
  readonly #decoder = new TextDecoder()
  #text = ''
  /** The last characters, because a blank line may end in the next piece. Not all is searched again: one event may come in many pieces. */
  #seam = ''
  #bytes = 0
  #events = 0

  /** Null for a reply that is not metered. */
  constructor (rules: HeadRules | null) {
    this.#rules = rules ?? { ...plainReply, ending: null }
  }

  push (chunk: Buffer): 'more' | 'pass' | 'failed' {
    this.#bytes += chunk.length
    const piece = this.#decoder.decode(chunk, { stream: true })
    const seam = this.#seam + piece
    this.#text += piece
    this.#seam = seam.slice(-3)
    for (let end = blankLine.test(seam) ? blankLine.exec(this.#text) : null; end !== null; end = blankLine.exec(this.#text)) {
      const event = this.#read(this.#text.slice(0, end.index))
      if (event !== 'preamble') return event === 'failed' ? 'failed' : 'pass'
      this.#text = this.#text.slice(end.index + end[0].length)
      this.#events += 1
      if (this.#events >= maxEvents) return 'pass'
    }
    return this.#bytes >= maxBytes ? 'pass' : 'more'
  }

  /** The stream is over: where its protocol has a last event, it was cut, because that is none of the preamble's. */
  end (): 'pass' | 'failed' {
    return this.#rules.ending === null || this.#read(this.#text) === 'content' ? 'pass' : 'failed'
  }

  #read (event: string): HeadEvent {
    const lines = event.split(/\r\n|\n|\r/)
    const data = lines.filter((line) => /^data(?::|$)/.test(line)).map((line) => line.slice(5).replace(/^ /, '')).join('\n')
    return data === '' ? 'preamble' : headEventOf(this.#rules, parseJson(data))
  }
}

/** Classifies an event by its parsed data. Some providers answer 200 and report only then that they are overloaded. */
function headEventOf ({ errors, failed, head }: HeadRules, data: unknown): HeadEvent {
  if (!isObject(data)) return 'content'
  const type = String(data['type'])
  if (failed.includes(type) || errors.some((path) => valuesAt(data, path.split('.')).some(tellsFailure))) return 'failed'
  return head.preamble.includes(type) || head.isEmpty(data) ? 'preamble' : 'content'
}
