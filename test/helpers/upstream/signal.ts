/** A queue between an event and a test that waits for it: nothing is lost when the event comes first. */
export class Signal<T> {
  readonly #items: T[] = []
  readonly #waiting: Array<(item: T) => void> = []

  push (item: T): void {
    const waiting = this.#waiting.shift()
    if (waiting === undefined) this.#items.push(item)
    else waiting(item)
  }

  /** The oldest item that no caller took yet, as soon as there is one. */
  async next (): Promise<T> {
    const item = this.#items.shift()
    if (item !== undefined) return item
    return await new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** Forgets what nobody took. */
  clear (): void {
    this.#items.length = 0
  }

  /** How many items wait to be taken. */
  get size (): number {
    return this.#items.length
  }
}
