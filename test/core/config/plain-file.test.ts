import { execFileSync } from 'node:child_process'
import { truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { isUnfit, maxPlainBytes, readPlainFile, readPlainFileNow } from '../../../plugins/core/config/plain-file.js'

t.test('a plain file is read, and nothing else is waited for', async (t) => {
  const folder = t.testdir({ file: 'text', long: '' })
  truncateSync(join(folder, 'long'), maxPlainBytes + 1)
  execFileSync('mkfifo', [join(folder, 'pipe')])
  t.equal(readPlainFileNow(join(folder, 'file')), 'text')
  t.equal(await readPlainFile(join(folder, 'file')), 'text')
  const unfit = { pipe: 'NOT_A_FILE', '.': 'NOT_A_FILE', long: 'TOO_LONG' }
  for (const [name, code] of Object.entries(unfit)) {
    t.throws(() => readPlainFileNow(join(folder, name)), { code }, name)
    const error = await readPlainFile(join(folder, name)).catch((reason) => reason)
    t.equal(error.code, code, name)
    t.equal(isUnfit(error), true, name)
  }
  t.throws(() => readPlainFileNow('/dev/zero'), { code: 'NOT_A_FILE' })
  const missing = await readPlainFile(join(folder, 'none')).catch((reason) => reason)
  t.equal(missing.code, 'ENOENT')
  t.equal(isUnfit(missing), false)
})

t.test('the longest file is read whole', async (t) => {
  const file = join(t.testdir({}), 'file')
  writeFileSync(file, 'x'.repeat(maxPlainBytes))
  t.equal(readPlainFileNow(file).length, maxPlainBytes)
  t.equal((await readPlainFile(file)).length, maxPlainBytes)
})
