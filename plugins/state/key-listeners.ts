import type { KeyChange } from './types.js'

/** Who wants to hear of changes of keys, in this process. */
export class KeyListeners {
  readonly #listeners = new Set<(change: KeyChange) => void>()

  readonly add = (listener: (change: KeyChange) => void): (() => void) => {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  readonly tell = (change: KeyChange): void => {
    for (const listener of this.#listeners) listener(change)
  }
}
