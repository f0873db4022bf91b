import { spawnSync } from 'node:child_process'
import { existsSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { makeFolder } from '../../plugins/state/make-folder.js'
import { cleanly, program } from '../helpers/launch.js'

t.test('a folder is made with those above it, and may be there', async (t) => {
  const folder = t.testdir({})
  for (const path of ['a/b/c', 'a/b/c', 'a', 'a/b/d/']) {
    makeFolder(join(folder, path))
    t.ok(existsSync(join(folder, path)), path)
  }
  writeFileSync(join(folder, 'file'), '')
  t.throws(() => makeFolder(join(folder, 'file')), { code: 'EEXIST' })
  t.throws(() => makeFolder(join(folder, 'file/x')), { code: 'ENOTDIR' })
  symlinkSync(join(folder, 'nowhere'), join(folder, 'link'))
  t.throws(() => makeFolder(join(folder, 'link')), { code: 'EEXIST' })
})

const skip = existsSync('/proc/self') ? false : 'no /proc'

t.test('one that the system does not let be made is told, and not tried for ever', { skip }, async (t) => {
  const config = 'upstreams: { a: { simulate: true } }\ngroups: { a: { protocols: [messages] } }\n' +
    'state: { engine: lmdb, path: /proc/none/of/it }'
  const file = join(t.testdir({ 'gateway.yaml': config }), 'gateway.yaml')
  const command = cleanly(process.execPath, [program, 'start', '--config', file])
  const { status, stderr } = spawnSync(...command, { encoding: 'utf8', timeout: 20_000 })
  t.equal(status, 1)
  t.match(stderr, /^llm-gateway: the folder \/proc\/none\/of\/it of the state cannot be used: ENOENT/)
})
