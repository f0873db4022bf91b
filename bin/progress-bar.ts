const width = 30
const showAfterMs = 300
const redrawMs = 100
/** Back to the first column, and erase everything right of it (ECMA-48 EL). */
const wipe = '\r\u001b[K'

/** One line that fills during a long operation. Short ones never show it. */
export class ProgressBar {
  readonly #write: ((text: string) => void) | null
  readonly #now: () => number
  #nextAt: number
  #shown = false

  /** `write`: writes text to a terminal; null if there is none, so that nothing is drawn. */
  constructor (write: ((text: string) => void) | null, now: () => number = () => performance.now()) {
    this.#write = write
    this.#now = now
    this.#nextAt = now() + showAfterMs
  }

  readonly update = (done: number, total: number): void => {
    const now = this.#now()
    if (this.#write === null || now < this.#nextAt) return
    this.#nextAt = now + redrawMs
    this.#shown = true
    const share = total === 0 ? 1 : done / total
    const full = Math.round(share * width)
    this.#write(`${wipe}[${'#'.repeat(full)}${'.'.repeat(width - full)}] ${Math.floor(100 * share)} %`)
  }

  /** Clears the line, before something else is written. */
  clear (): void {
    if (this.#shown) this.#write?.(wipe)
    this.#shown = false
  }
}
