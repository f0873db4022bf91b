import { Listeners } from './listeners.js'
import { changed, withLabels } from './key-record.js'
import type { KeyChange, KeyRecord, KeyStore } from './types.js'

/** Keys of this process, lost at exit. */
export function memoryKeys (): KeyStore {
  const byId = new Map<string, KeyRecord>()
  const byDigest = new Map<string, KeyRecord>()
  const listeners = new Listeners<[KeyChange]>()
  const put = (record: KeyRecord): void => {
    byId.set(record.id, record)
    byDigest.set(record.digest, record)
    listeners.tell({ id: record.id, digest: record.digest })
  }
  return {
    find: async (digest) => {
      const record = byDigest.get(digest)
      return record === undefined ? null : withLabels(record)
    },
    onChange: listeners.add,
    read: async (id) => byId.get(id) ?? null,
    create: async (record) => {
      if (byId.has(record.id) || byDigest.has(record.digest)) return false
      put(record)
      return true
    },
    update: async (id, changes) => {
      const old = byId.get(id)
      if (old === undefined) return null
      const record = changed(old, changes)
      byDigest.delete(old.digest)
      listeners.tell({ id, digest: old.digest })
      put(record)
      return record
    },
    list: async function * () { yield * byId.values() },
    close: async () => {},
  }
}
