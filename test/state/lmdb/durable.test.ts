/** What a thread writes for a process, so that no request waits for its disk. */
import { once } from 'node:events'
import { mkdirSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { MessageChannel } from 'node:worker_threads'
import t from 'tap'
import { DurableThread, saveEntries, serveDurable } from '../../../plugins/state/lmdb/durable.js'
import { openLmdb } from '../../../plugins/state/lmdb/open.js'
import { lmdbNotes } from '../../../plugins/state/lmdb/notes.js'
import { launch } from '../../helpers/launch.js'

t.test('a thread saves what comes through its port, until it is told to end', async (t) => {
  const path = t.testdir({})
  const files = await openLmdb(path, 'boot-1')
  const { port1, port2 } = new MessageChannel()
  await serveDurable(port2, path)
  // Within a transaction: what was read a moment ago is read the same for a millisecond.
  const stored = <T>(read: () => T): T => files.transaction(read)
  const ask = async (message: unknown): Promise<unknown> => {
    const answer = once(port1, 'message')
    port1.postMessage(message)
    return await answer
  }
  t.strictSame(await ask([['spent', 'g:chat', 7], ['spent', 'g:chat b', [3, 5, 0, Infinity]], ['spent', 'gone', 1]]), [true])
  t.strictSame(await ask([['spent', 'g:chat', 6], ['spent', 'gone', null]]), [true], 'what is older than the file has is not written')
  const spent = stored(() => ['g:chat', 'g:chat b', 'gone'].map((name) => files.spent.get(name)))
  t.strictSame(spent, [7, [3, 5, 0, Infinity], undefined])
  t.strictSame(await ask([['notes', 'a', { text: 'one', until: 9 }], ['notes', 'b', { text: 'two', until: 9 }]]), [true])
  t.strictSame(await ask([['notes', 'b', null]]), [true])
  t.strictSame(await ask([['notes', 'b', null]]), [false], 'what is not there is removed by nobody')
  t.strictSame(await ask([['notes', 'b', null], ['notes', 'd', { text: 'four', until: 9 }]]), [true])
  t.strictSame(stored(() => [files.notes.get('a'), files.notes.get('b')]), [{ text: 'one', until: 9 }, undefined])

  const closed = once(port1, 'close')
  const answers: unknown[] = []
  port1.on('message', (answer) => answers.push(answer))
  port1.postMessage([['spent', 'g:chat', 8]])
  port1.postMessage([['notes', 'c', { text: 'three', until: 9 }]])
  port1.postMessage(null)
  await closed
  t.strictSame(answers, [true, true], 'what came before the end is saved, each with an answer')
  t.strictSame(stored(() => [files.spent.get('g:chat'), files.notes.get('c')]), [8, { text: 'three', until: 9 }])
  t.equal(saveEntries(files, [['spent', 'g:chat', 9]]), true, 'and what others have open stays open')
  await files.close()
  t.equal(saveEntries(files, [['spent', 'g:chat', 10]]), false)
  await t.resolves(import('../../../plugins/state/lmdb/durable-thread.js'), 'and outside of a thread there is nothing to do')
})

t.test('a thread that could not open its file begins again with the next write, and ends when all is saved', async (t) => {
  const path = join(t.testdir({ file: '' }), 'file')
  const thread = new DurableThread(path)
  t.strictSame(await Promise.all([thread.save([['spent', 'g:chat', 5]]), thread.save([['spent', 'g:chat', 6]])]), [false, false])
  rmSync(path)
  mkdirSync(path)
  t.equal(await thread.save([['spent', 'g:chat', 7]]), true)
  let isSaved = false
  const last = thread.save([['spent', 'g:chat', 8]]).then((answer) => { isSaved = answer })
  await thread.close()
  t.equal(isSaved, true)
  await last
})

t.test('who closes the files has none of them open', { skip: process.platform !== 'linux' && 'needs /proc' }, async (t) => {
  const path = t.testdir({})
  const opened = (): string[] => readdirSync('/proc/self/fd').map(linkOf).filter((to) => to.startsWith(path))
  for (const time of ['made', 'opened again']) {
    const { close } = await openLmdb(path, 'boot-1')
    t.match(opened().join(), /keys\.mdb.*limits\.mdb/)
    await close()
    t.strictSame(opened(), [], time)
  }
})

function linkOf (fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return ''
  }
}

t.test('notes whose time is over go while others are written, a few of which are looked at each time', async (t) => {
  const files = await openLmdb(t.testdir({}), 'boot-1')
  let now = 0
  let most = 0
  const getRange: typeof files.notes.getRange = (options) => {
    const found = files.notes.getRange(options)
    most = Math.max(most, [...found].length)
    return found
  }
  const table = new Proxy(files.notes, { get: (notes, name) => name === 'getRange' ? getRange : Reflect.get(notes, name).bind(notes) })
  const notes = lmdbNotes({ ...files, notes: table }, () => now)
  const write = async (name: string, count: number): Promise<void> => {
    await Promise.all(Array.from({ length: count }, async (_, n) => await notes.write(`${name} ${n}`, 'b', 10)))
  }
  await write('old', 200)
  now = 20
  t.equal(await notes.read('old 0'), null)
  for (let turn = 0; turn < 10; turn += 1) await write(`new ${turn}`, 100)
  const names = (): string[] => files.transaction(() => [...files.notes.getKeys()])
  t.equal(names().filter((name) => name.startsWith('new')).length, 1_000)
  t.same(names().filter((name) => name.startsWith('old')), [])
  t.ok(most > 0 && most < 10, `${most} at once`)
  t.equal(await notes.read('new 0 0'), 'b')
  await files.thread.close()
  await t.rejects(async () => await notes.write('late', 'c', 10), { message: 'a note could not be written' })
  await files.close()
})

t.test('a process that ends while a note is being written closes all that it has open before', async (t) => {
  const { href } = new URL('../../../dist/plugins/state/index.js', import.meta.url)
  const { out, exited } = launch(t, '--input-type=module', ['-e', `
    import { openState } from '${href}'
    const { notes, close } = await openState({ engine: 'lmdb', path: process.argv[1] })
    await notes.write('a', 'begins the thread', 9)
    notes.write('b', 'is not waited for', 9)
    await close()
    console.log('closed')`, t.testdir({})])
  t.equal(await exited, 0)
  t.equal(await out.next(), 'closed')
})
