import {
  copyFileSync, mkdirSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync, symlinkSync, truncateSync, writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { FileLedger } from '../../../plugins/state/ledger/file-ledger.js'
import { handles, idsIn, record, unsettledIn } from './ledger-host.js'

t.test('a file that another process deletes meanwhile is none; one that cannot be read is told', async (t) => {
  const path = t.testdir({})
  const killed = new FileLedger(path)
  await killed.append(record('kept'))
  symlinkSync(join(path, 'gone'), join(path, '000000000000000-1-00000000.ledger'))
  const reader = new FileLedger(path)
  t.same(await unsettledIn(reader), ['kept'], 'it stood in the folder, and was gone when it was looked at')
  t.same(await idsIn(reader), ['kept'])

  const other = new FileLedger(path)
  await other.append(record('going'))
  const read = other.read()[Symbol.asyncIterator]()
  t.match(await read.next(), { value: { id: 'kept' } })
  for (const name of readdirSync(path)) rmSync(join(path, name))
  t.match(await read.next(), { done: true }, 'or when it was read')

  const looped = join(path, '000000000000001-1-00000000.ledger')
  symlinkSync(looped, looped)
  await t.rejects(idsIn(reader), { code: 'ELOOP' })
  rmSync(looped)
  mkdirSync(looped)
  await t.rejects(idsIn(reader), { code: 'EISDIR' })
  rmdirSync(looped)
  await Promise.all([killed.close(), other.close()])
})

t.test('nothing more is written to a file that somebody deleted, cut off or moved, nor does it miss its folder', async (t) => {
  const path = join(t.testdir({}), 'ledger')
  const ledger = new FileLedger(path)
  await ledger.append(record('deleted'))
  for (const name of readdirSync(path)) rmSync(join(path, name))
  await ledger.append(record('kept'))
  t.same(await idsIn(ledger), ['kept'])
  await ledger.append(record('too'))
  t.equal(readdirSync(path).length, 1, 'a file that is there goes on')
  truncateSync(join(path, String(readdirSync(path)[0])), 5)
  for (const id of ['one more', 'and one']) await ledger.append(record(id))
  t.equal(readdirSync(path).length, 2, 'one that was cut off does not')
  t.same(await idsIn(ledger), ['one more', 'and one'])
  for (const name of readdirSync(path)) renameSync(join(path, name), join(path, `../${name}`))
  for (const id of ['behind', 'it']) await ledger.append(record(id))
  t.equal(readdirSync(path).length, 1)
  t.same(await idsIn(ledger), ['behind', 'it'])
  const at = join(path, String(readdirSync(path)[0]))
  renameSync(at, join(path, '../moved'))
  writeFileSync(at, '')
  for (const id of ['whose', 'name is taken']) await ledger.append(record(id))
  t.equal(readdirSync(path).length, 2, 'one in whose place another was made does not, either')
  t.same(await idsIn(ledger), ['whose', 'name is taken'])
  rmSync(path, { recursive: true })
  await ledger.append(record('again'))
  t.same(await idsIn(ledger), ['again'])
  await ledger.close()
})

const meanwhile: ReadonlyArray<readonly [what: string, change: (file: string, moved: string) => void]> = [
  ['deleted', (file) => rmSync(file)],
  ['moved', (file, moved) => renameSync(file, moved)],
  ['copied and moved', (file, moved) => {
    renameSync(file, moved)
    copyFileSync(moved, file)
  }],
  ['emptied', (file) => truncateSync(file)],
]
for (const [what, change] of meanwhile) {
  t.test(`a record that is being written while its file is ${what} is kept, once`, async (t) => {
    const path = t.testdir({ other: '' })
    const [other, moved] = [join(path, 'other'), join(path, '1.ledger')]
    const prototype = await handles(t, other)
    const ledger = new FileLedger(path)
    await ledger.append(record('before'))
    const [first] = readdirSync(path)
    const { appendFile } = prototype
    prototype.appendFile = async function (text) {
      prototype.appendFile = appendFile
      change(join(path, String(first)), moved)
      await appendFile.call(this, text)
    }
    for (const id of ['meanwhile', 'after']) await ledger.append(record(id))
    const ids = await idsIn(ledger, { onDamage: (at) => t.fail(`${at} is whole`) })
    t.same(ids.filter((id) => id !== 'before'), ['meanwhile', 'after'])
    // A usage store does not look again at what it has read.
    const holding = readdirSync(path).filter((name) => readFileSync(join(path, name), 'utf8').includes('"meanwhile"'))
    t.ok(holding.length === 1 && !holding.includes(String(first)), 'in a file of its own')
    await ledger.close()
  })
}

t.test('a record that the disk has stays where it is if its file cannot be looked at', async (t) => {
  const path = join(t.testdir({}), 'ledger')
  const ledger = new FileLedger(path)
  await ledger.append(record('before'))
  renameSync(path, `${path}-away`)
  // What is below it cannot be looked at, as below a folder without rights.
  writeFileSync(path, '')
  const trouble = new Promise((resolve) => { ledger.onTrouble(resolve) })
  t.equal(await Promise.race([ledger.append(record('meanwhile')), trouble]), undefined)
  rmSync(path)
  renameSync(`${path}-away`, path)
  await ledger.append(record('after'))
  t.same(await idsIn(ledger), ['before', 'meanwhile', 'after'])
  await ledger.close()
})

t.test('where its volume is unmounted, nothing is written in its place: records wait until it is back', async (t) => {
  const dir = t.testdir({})
  const [volume, away] = [join(dir, 'volume'), join(dir, 'away')]
  const ledger = new FileLedger(join(volume, 'ledger'))
  renameSync(volume, away)
  mkdirSync(volume)
  const kept = ledger.append(record('waits'))
  await ledger.flush()
  t.same(readdirSync(volume), [])
  rmdirSync(volume)
  renameSync(away, volume)
  await kept
  t.same(await idsIn(ledger), ['waits'])
  await ledger.close()
})
