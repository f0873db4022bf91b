import t from 'tap'
import { lmdbKeys } from '../../../plugins/state/lmdb/keys.js'
import { openLmdb } from '../../../plugins/state/lmdb/open.js'
import type { KeyChange, KeyRecord } from '../../../plugins/state/types.js'

function record (id: string): KeyRecord {
  return { id, digest: id, group: 'chat', disabled: false, expiresAt: null, limits: {}, label: null, createdAt: 1 }
}

t.test('who is far behind the changes of keys takes all for changed', async (t) => {
  const files = await openLmdb(t.testdir({}), 'boot-1')
  const writer = lmdbKeys(files, 3)
  const watcher = lmdbKeys(files, 3)
  const heard: KeyChange[] = []
  watcher.onChange((change) => heard.push(change))
  for (let i = 0; i < 5; i += 1) await writer.create(record(String(i)))
  await watcher.create(record('own'))
  t.same(heard, [{ group: '*' }])
  await watcher.create(record('next'))
  t.same(heard, [{ group: '*' }, { id: 'next', digest: 'next' }])
  await writer.close()
  await watcher.close()
  await files.close()
})
