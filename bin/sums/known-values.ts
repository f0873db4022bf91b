interface Known<T> {
  readonly bytes: Buffer
  readonly value: T
}

/**
 * Values that many records share, found by the bytes of their JSON: making one for each record costs more than finding all of its fields.
 */
export class KnownValues<T> {
  readonly #make: (json: string) => T
  /** By a hash of their bytes; of two with the same hash, the last. */
  readonly #known = new Map<number, Known<T>>()
  /** Some fields have the same value in all records. */
  #last: Known<T> | null = null

  constructor (make: (json: string) => T) {
    this.#make = make
  }

  at (bytes: Buffer, from: number, to: number): T {
    const last = this.#last
    if (last !== null && areSame(last.bytes, bytes, from, to)) return last.value
    const known = this.#find(bytes, from, to)
    this.#last = known
    return known.value
  }

  #find (bytes: Buffer, from: number, to: number): Known<T> {
    let hash = 0
    for (let at = from; at < to; at += 1) hash = Math.imul(hash ^ Number(bytes[at]), 16_777_619)
    const known = this.#known.get(hash)
    if (known !== undefined && areSame(known.bytes, bytes, from, to)) return known
    if (this.#known.size >= maxKnown) this.#known.clear()
    // A copy: a part of a buffer would keep all of it in memory.
    const own = Buffer.from(bytes.subarray(from, to))
    const made = { bytes: own, value: this.#make(own.toString()) }
    this.#known.set(hash, made)
    return made
  }
}

const maxKnown = 10_000

function areSame (known: Buffer, bytes: Buffer, from: number, to: number): boolean {
  if (known.length !== to - from) return false
  for (let at = 0; at < known.length; at += 1) if (known[at] !== bytes[from + at]) return false
  return true
}
