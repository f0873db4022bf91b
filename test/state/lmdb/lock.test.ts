/** Processes that open files of lmdb beside one that writes them. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { lmdbBalances } from '../../../plugins/state/lmdb/balances.js'
import { lmdbKeys } from '../../../plugins/state/lmdb/keys.js'
import { openLmdb } from '../../../plugins/state/lmdb/open.js'
import { lmdbNotes } from '../../../plugins/state/lmdb/notes.js'

const heldMs = 400

/** Has the lock of one file for a while. */
const holder = `
  import { open } from 'lmdb'
  const lock = open({ path: process.argv[1] + '.gate', overlappingSync: false })
  lock.transactionSync(() => {
    process.stdout.write('held')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${heldMs})
  })
  await lock.close()`

function run (t: Test, args: readonly string[]): ChildProcess {
  // Through `env -i`: the test runner would put its own loader into the process.
  const command = ['-i', `PATH=${process.env['PATH']}`, process.execPath, ...args]
  const child = spawn('/usr/bin/env', command, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  return child
}

t.test('a process that opens the files undoes nothing of what another writes meanwhile', async (t) => {
  const path = t.testdir({})
  const files = await openLmdb(path)
  const { accounts } = files.tables
  const child = run(t, [fileURLToPath(new URL('opener.js', import.meta.url)), path, '150'])
  let count = 0
  let undone = 0
  while (child.exitCode === null) {
    for (let times = 0; times < 50; times += 1) {
      files.writeBalances(() => {
        if (Number(accounts.get('count')?.toString() ?? 0) !== count) undone += 1
        count += 1
        accounts.putSync('count', Buffer.from(String(count)))
        accounts.putSync(`other ${count % 100}`, Buffer.alloc(200))
      })
    }
    await turn()
  }
  t.equal(child.exitCode, 0)
  t.equal(undone, 0, `${count} writes`)
  await files.close()
})

const asked = { group: 'chat', groupLimits: {}, key: 'ci', keyLimits: {}, id: 'a', requests: 1, tokens: 1, floor: 0 }
const key = { id: 'one', digest: 'one', group: 'chat', disabled: false, expiresAt: null, limits: {}, label: null, createdAt: 1 }

t.test('whoever opens a file or writes it waits for whoever has its lock', async (t) => {
  const path = t.testdir({})
  const files = await openLmdb(path, 'boot-1')
  const keys = lmdbKeys(files)
  const balances = lmdbBalances(files, { holdTtlMs: 60_000 })
  const ways: ReadonlyArray<readonly [name: string, file: string, way: () => Promise<unknown>]> = [
    ['opens keys', 'keys.mdb', async () => await openBeside(path)],
    ['opens limits', 'limits.mdb', async () => await openBeside(path)],
    ['holds', 'limits.mdb', async () => await balances.hold(asked)],
    ['creates a key', 'keys.mdb', async () => await keys.create(key)],
    ['notes', 'keys.mdb', async () => await lmdbNotes(files).write('a', 'b', 1_000)],
    ['saves what is spent', 'keys.mdb', async () => await files.thread.save([['spent', 'g:chat', 1]])],
  ]
  for (const [name, file, way] of ways) {
    const other = run(t, ['--input-type=module', '--eval', holder, `${path}/${file}`])
    await once(Object(other.stdout), 'data')
    const at = Date.now()
    await way()
    t.ok(Date.now() - at > heldMs / 2, name)
    if (other.exitCode === null) await once(other, 'exit')
  }
  await keys.close()
  await balances.close()
  await files.close()

  async function openBeside (path: string): Promise<void> {
    const child = run(t, [fileURLToPath(new URL('opener.js', import.meta.url)), path, '1'])
    const [code] = await once(child, 'exit')
    t.equal(code, 0)
  }
})

/**
 * What a user who may not write all files is told. The folder is anybody's. All code is loaded before, by another state: a checkout may be
 * where others may not read.
 */
const asNobody = `
  import { openState } from '${new URL('../../../dist/plugins/state/index.js', import.meta.url).href}'
  const [, own, path] = process.argv
  await (await openState({ engine: 'lmdb', path: own })).close()
  if (process.getuid() === 0) process.setuid(65534)
  await openState({ engine: 'lmdb', path }).catch(({ message }) => process.stdout.write(message))`

t.test('a file that another user made, and that cannot be written, is named, and does not end the process', async (t) => {
  const path = mkdtempSync(join(tmpdir(), 'llm-gateway-lock-'))
  t.teardown(() => rmSync(path, { recursive: true, force: true }))
  const { close } = await openLmdb(path)
  await close()
  chmodSync(path, 0o777)
  const files = readdirSync(path)
  t.equal(files.length, 8)
  for (const file of files) chmodSync(join(path, file), 0o666)
  const own = join(t.testdir({}), 'own')
  const toldIn = async (): Promise<string> => {
    const child = run(t, ['--input-type=module', '--eval', asNobody, own, path])
    let told = ''
    for await (const part of Object(child.stdout)) told += String(part)
    return told
  }
  for (const file of files) {
    chmodSync(join(path, file), 0o444)
    t.match(await toldIn(), `EACCES: permission denied, access '${join(path, file)}'`)
    chmodSync(join(path, file), 0o666)
  }
  for (const lock of files.filter((name) => name.endsWith('-lock'))) {
    rmSync(join(path, lock))
    chmodSync(path, 0o555)
    t.match(await toldIn(), `EACCES: permission denied, access '${path}'`, `where ${lock} cannot be made`)
    chmodSync(path, 0o777)
    await openLmdb(path).then(async (again) => await again.close())
    chmodSync(join(path, lock), 0o666)
  }
})
