/** How much text of one direction a span may hold, in UTF-16 units; the rest is left out, and `truncated` is set. */
export class TextBudget {
  /** True once something was left out. */
  truncated = false
  #left: number
  #texts: number

  /** `texts`: how many it may hold, where each has names and brackets around it. */
  constructor (units: number, texts = Infinity) {
    this.#left = units
    this.#texts = texts
  }

  /** As much of the beginning of `text` as still fits. */
  take (text: string): string {
    this.#texts -= 1
    if (this.#texts < 0) this.#left = 0
    if (text.length <= this.#left) {
      this.#left -= text.length
      return text
    }
    const taken = text.slice(0, this.#left)
    this.#left = 0
    this.truncated = true
    // Half of a surrogate pair is no text.
    return /[\uD800-\uDBFF]$/.test(taken) ? taken.slice(0, -1) : taken
  }
}
