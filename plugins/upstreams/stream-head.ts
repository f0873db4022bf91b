import type { StreamHead } from '../core/upstream.js'
import { headEventOf } from '../protocols/stream-heads.js'
import type { ProtocolLabel } from '../protocols/types.js'

/** No more of a preamble is held; what comes then is passed on whatever it is. */
const maxEvents = 64
const maxBytes = 64 * 1024

/** A blank line, as the HTML standard has event streams (9.2). */
const blankLine = /\r\n\r\n|\n\n|\r\r/

/** Reads a stream's first events until one of them has content or tells of a failure. */
export class EventHead implements StreamHead {
  readonly #protocol: ProtocolLabel
  readonly #decoder = new TextDecoder()
  #text = ''
  #bytes = 0
  #events = 0

  constructor (protocol: ProtocolLabel) {
    this.#protocol = protocol
  }

  push (chunk: Buffer): 'more' | 'pass' | 'failed' {
    this.#bytes += chunk.length
    this.#text += this.#decoder.decode(chunk, { stream: true })
    for (let end = blankLine.exec(this.#text); end !== null; end = blankLine.exec(this.#text)) {
      const event = this.#read(this.#text.slice(0, end.index))
      if (event !== 'preamble') return event === 'failed' ? 'failed' : 'pass'
      this.#text = this.#text.slice(end.index + end[0].length)
      this.#events += 1
      if (this.#events >= maxEvents) return 'pass'
    }
    return this.#bytes >= maxBytes ? 'pass' : 'more'
  }

  #read (event: string): 'preamble' | 'failed' | 'content' {
    const lines = event.split(/\r\n|\n|\r/)
    const data = lines.filter((line) => /^data(?::|$)/.test(line)).map((line) => line.slice(5).replace(/^ /, '')).join('\n')
    if (data === '') return 'preamble'
    try {
      return headEventOf(this.#protocol, JSON.parse(data))
    } catch {
      return 'content'
    }
  }
}
