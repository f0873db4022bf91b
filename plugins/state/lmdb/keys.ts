import { Listeners, withLabels } from '../key-record.js'
import type { LmdbFiles } from './open.js'
import type { KeyChange, KeyRecord, KeyStore } from '../types.js'

/** How soon a change that another process made is heard of. */
const watchMs = 200
/**
 * Keys that every process of one host shares. Changes are numbered in the file, and each process looks for new numbers.
 * `changesKept` of them stay there; a process that is further behind takes everything for changed.
 */
export function lmdbKeys ({ writeDurable, keysByDigest, digestsById, changes }: LmdbFiles, changesKept = 1_000): KeyStore {
  const listeners = new Listeners()
  const lastChange = (): number => [...changes.getKeys({ reverse: true, limit: 1 })][0] ?? 0
  let seen = lastChange()

  const watch = (): void => {
    const missed = [...changes.getRange({ start: seen + 1 })]
    const first = missed[0]
    if (first === undefined) return
    const gap = first.key > seen + 1
    seen = missed.reduce((_, { key }) => key, seen)
    if (gap) return listeners.tell({ group: '*' })
    for (const { value } of missed) listeners.tell(value)
  }
  const timer = setInterval(watch, watchMs).unref()

  /** Runs in a transaction. */
  const note = (change: KeyChange): void => {
    const next = lastChange() + 1
    changes.putSync(next, change)
    changes.removeSync(next - changesKept)
  }
  const recordOf = (id: string): KeyRecord | undefined => keysByDigest.get(digestsById.get(id) ?? '')
  const put = (record: KeyRecord): void => {
    keysByDigest.putSync(record.digest, record)
    digestsById.putSync(record.id, record.digest)
    note({ id: record.id, digest: record.digest })
  }
  const write = <T>(step: () => T): T => {
    const result = writeDurable(step)
    watch()
    return result
  }
  return {
    find: async (digest) => {
      const found = keysByDigest.get(digest)
      return found === undefined ? null : withLabels(found)
    },
    read: async (id) => recordOf(id) ?? null,
    onChange: listeners.add,
    announce: async (change) => write(() => note(change)),
    create: async (record) => write(() => {
      if (digestsById.doesExist(record.id) || keysByDigest.doesExist(record.digest)) return false
      put(record)
      return true
    }),
    update: async (id, changed) => write(() => {
      const old = recordOf(id)
      if (old === undefined) return null
      const record = { ...old, ...changed }
      keysByDigest.removeSync(old.digest)
      note({ id, digest: old.digest })
      put(record)
      return record
    }),
    list: async function * () { for (const { value } of keysByDigest.getRange()) yield value },
    close: async () => clearInterval(timer),
  }
}
