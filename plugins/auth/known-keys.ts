import { LRUCache } from 'lru-cache'
import type { Key, KeyChange } from '../core/types.js'

export interface KnownKey {
  readonly key: Key
  readonly loadedAt: number
}

/** The keys that were used last, by digest; and their digests by id, so that a change of one key is no search through all. */
export class KnownKeys extends LRUCache<string, KnownKey> {
  readonly #digests: Map<string, Set<string>>

  constructor (max: number) {
    const digests = new Map<string, Set<string>>()
    super({
      max,
      dispose: ({ key: { id } }, digest) => {
        const ofId = digests.get(id)
        if (ofId?.delete(digest) === true && ofId.size === 0) digests.delete(id)
      },
      onInsert: ({ key: { id } }, digest) => {
        const ofId = digests.get(id)
        if (ofId === undefined) digests.set(id, new Set([digest]))
        else ofId.add(digest)
      },
    })
    this.#digests = digests
  }

  /** Removes the keys that a change concerns, and returns their digests. */
  forget (change: KeyChange): string[] {
    const { id = '', digest = '', group } = change
    const among = group === undefined ? [digest, ...this.#digests.get(id) ?? []] : [...this.keys()]
    return among.filter((each) => {
      const known = this.peek(each)
      return known !== undefined && concerns(change, each, known.key) && this.delete(each)
    })
  }
}

export function concerns (change: KeyChange, digest: string, key: Key): boolean {
  return change.group === '*' || change.digest === digest || change.id === key.id || change.group === key.group
}
