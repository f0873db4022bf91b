import { existsSync } from 'node:fs'
import t from 'tap'
import { hasDiskRoom } from '../../../plugins/state/lmdb/disk-room.js'

t.test('a folder has room, and what is no disk has none', async (t) => {
  t.equal(hasDiskRoom(t.testdir({})), true)
  if (existsSync('/proc/self')) t.equal(hasDiskRoom('/proc'), false)
})
