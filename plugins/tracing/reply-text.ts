/** The text of a reply, as much as a budget allows: of a JSON document at its end, of an event stream event by event. */
import { StringDecoder } from 'node:string_decoder'
import { fieldOf, valuesAt } from '../core/body/json-object.js'
import { parseJson } from '../core/body/parse-json.js'
import type { TextPlace } from '../protocols/text-rules.js'
import type { TextBudget } from './text-budget.js'

/** Longer documents or events are not read. */
const maxDocumentLength = 256 * 1024

export class ReplyText {
  text = ''
  readonly #places: readonly TextPlace[]
  readonly #budget: TextBudget
  readonly #events: boolean
  readonly #decoder = new StringDecoder()
  #pending = ''

  /** `places`: where replies of the protocol have text of the model. */
  constructor (places: readonly TextPlace[], budget: TextBudget, events: boolean) {
    this.#places = places
    this.#budget = budget
    this.#events = events
  }

  push (chunk: Buffer): void {
    if (this.#budget.truncated) return
    this.#pending += this.#decoder.write(chunk)
    if (this.#events) this.#readLines()
    if (this.#pending.length <= maxDocumentLength) return
    this.#pending = ''
    this.#budget.truncated = true
  }

  end (): void {
    // In an event stream the beginning of a line, which is no JSON.
    this.#read(this.#pending)
    this.#pending = ''
  }

  #readLines (): void {
    const end = Math.max(this.#pending.lastIndexOf('\n'), this.#pending.lastIndexOf('\r')) + 1
    const lines = this.#pending.slice(0, end).split(/[\r\n]+/)
    this.#pending = this.#pending.slice(end)
    for (const line of lines) if (line.startsWith('data:')) this.#read(line.slice('data:'.length))
  }

  #read (text: string): void {
    const json = parseJson(text)
    // A stream that is no event stream is an array of documents like its events.
    for (const document of Array.isArray(json) ? json : [json]) {
      const type = fieldOf(document, 'type')
      const places = this.#places.filter((place) => place.type === null || place.type === type)
      for (const found of places.flatMap(({ path }) => valuesAt(document, path))) {
        if (typeof found === 'string') this.text += this.#budget.take(found)
      }
    }
  }
}
