/** How much text of one direction a span may hold, in UTF-16 units; the rest is left out, and `truncated` is set. */
export class TextBudget {
  /** True once something was left out. */
  truncated = false
  #left: number

  constructor (units: number) {
    this.#left = units
  }

  /** As much of the beginning of `text` as still fits. */
  take (text: string): string {
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
