import { changed, withLabels } from '../key-record.js'
import { KeyChanges } from './key-changes.js'
import type { LmdbFiles } from './open.js'
import type { KeyRecord, KeyStore } from '../types.js'

/** Keys that every process of one host shares. `changesKept`: see `KeyChanges`. */
export function lmdbKeys ({ writeDurable, keysByDigest, digestsById, changes: file }: LmdbFiles, changesKept = 1_000): KeyStore {
  const changes = new KeyChanges(file, changesKept)
  const recordOf = (id: string): KeyRecord | undefined => keysByDigest.get(digestsById.get(id) ?? '')
  const put = (record: KeyRecord): void => {
    keysByDigest.putSync(record.digest, record)
    digestsById.putSync(record.id, record.digest)
    changes.add({ id: record.id, digest: record.digest })
  }
  const write = <T>(step: () => T): T => {
    const result = writeDurable(step)
    changes.look()
    return result
  }
  return {
    find: async (digest) => {
      const found = keysByDigest.get(digest)
      return found === undefined ? null : withLabels(found)
    },
    read: async (id) => recordOf(id) ?? null,
    onChange: changes.listeners.add,
    create: async (record) => write(() => {
      if (digestsById.doesExist(record.id) || keysByDigest.doesExist(record.digest)) return false
      put(record)
      return true
    }),
    update: async (id, edit) => write(() => {
      const old = recordOf(id)
      if (old === undefined) return null
      const record = changed(old, edit)
      keysByDigest.removeSync(old.digest)
      changes.add({ id, digest: old.digest })
      put(record)
      return record
    }),
    list: async function * () { for (const { value } of keysByDigest.getRange()) yield value },
    close: async () => changes.close(),
  }
}
