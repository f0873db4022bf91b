/** Who wants to hear of something, in this process. */
export class Listeners<Args extends readonly unknown[]> {
  readonly #listeners = new Set<(...args: Args) => void>()

  readonly add = (listener: (...args: Args) => void): (() => void) => {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  readonly tell = (...args: Args): void => {
    for (const listener of this.#listeners) listener(...args)
  }
}
