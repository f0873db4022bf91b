import { isObject } from '../../core/body/json-object.js'
import { parseJson } from '../../core/body/parse-json.js'
import { Listeners } from '../listeners.js'
import { changed, readKey, writeKey } from '../key-record.js'
import type { RedisLink } from './link.js'
import type { KeyChange, KeyRecord, KeyStore } from '../types.js'

const listBatch = '1000'
/** Another writer may come between the reading and the writing of an update. More attempts than this mean a fault. */
const updateAttempts = 10

/** Keys that every process with the same Redis shares. Changes reach all of them through one channel. */
export async function redisKeys (link: RedisLink, prefix: string): Promise<KeyStore> {
  const byId = `${prefix}:{keys}:by-id`
  const byDigest = `${prefix}:{keys}:by-digest`
  const channel = `${prefix}:changes`
  const listeners = new Listeners<[KeyChange]>()
  await link.subscribe(channel, (text) => listeners.tell(readChange(text)), () => listeners.tell({ group: '*', missed: true }))

  const recordOf = async (id: string): Promise<KeyRecord | null> => {
    const text = await link.script('readKey', [byId, byDigest], [id])
    return typeof text === 'string' ? readKey(text) : null
  }
  /** False if the stored key is no longer `old`, or the new digest is another key's. */
  const put = async (old: KeyRecord | null, record: KeyRecord): Promise<boolean> => {
    const before = old === null ? ['', ''] : [old.digest, writeKey(old)]
    const after = [record.digest, writeKey(record)]
    const changes = [old?.digest ?? record.digest, record.digest].map((digest) => JSON.stringify({ id: record.id, digest }))
    return await link.script('putKey', [byId, byDigest], [record.id, ...before, ...after, channel, ...changes]) === 1
  }
  return {
    find: async (digest) => {
      const text = await link.ask(async (client) => await client.hget(byDigest, digest), byDigest)
      return text === null ? null : readKey(text)
    },
    read: recordOf,
    onChange: listeners.add,
    create: async (record) => await put(null, record),
    update: async (id, changes) => {
      for (let attempt = 0; attempt < updateAttempts; attempt += 1) {
        const old = await recordOf(id)
        if (old === null) return null
        const record = changed(old, changes)
        if (await put(old, record)) return record
      }
      throw new Error('the key is changed by others at the same time')
    },
    list: () => listed(link, byDigest),
    close: async () => {},
  }
}

async function * listed (link: RedisLink, byDigest: string): AsyncGenerator<KeyRecord> {
  let cursor = '0'
  do {
    const from = cursor
    const [next, fields] = await link.ask(async (client) => await client.hscan(byDigest, from, 'COUNT', listBatch), byDigest)
    cursor = next
    for (const [index, text] of fields.entries()) if (index % 2 === 1) yield readKey(text)
  } while (cursor !== '0')
}

/** Reads a pushed message. If it is none of the gateway's, everything counts as changed: an error would end the process. */
function readChange (text: string): KeyChange {
  const value = parseJson(text)
  return isObject(value) ? value : { group: '*' }
}
