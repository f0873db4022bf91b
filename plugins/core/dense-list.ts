/** Knows its own index in a list, -1 for none. */
interface Placed {
  place: number
}

/**
 * Objects in no order, each of which is removed at once. An array without gaps in place of a set or a map: V8 keeps their outgrown tables
 * reachable from each other, and with them every object that was in one, until the next full collection.
 */
export class DenseList<T extends Placed> implements Iterable<T> {
  readonly #items: T[] = []

  get size (): number {
    return this.#items.length
  }

  /** May be called repeatedly. */
  add (item: T): void {
    if (item.place < 0) item.place = this.#items.push(item) - 1
  }

  /** May be called repeatedly. */
  delete (item: T): void {
    const last = this.#items.at(-1)
    if (item.place < 0 || last === undefined) return
    this.#items[item.place] = last
    last.place = item.place
    this.#items.pop()
    item.place = -1
  }

  [Symbol.iterator] (): Iterator<T> {
    return this.#items.values()
  }
}
