import {
  mkdirSync, renameSync, rmSync, statSync, symlinkSync, unwatchFile, utimesSync, watchFile, writeFileSync, type Stats,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { watchConfig } from '../../plugins/standalone/watch.js'
import { Signal } from '../helpers/upstream.js'

t.test('a change is seen, however the file is replaced', async (t) => {
  const folder = t.testdir({ 'gateway.yaml': 'one' })
  const file = join(folder, 'gateway.yaml')
  let changes = 0
  t.teardown(watchConfig(file, 20, () => { changes += 1 }))
  // Told of the same looks, just after the watcher under test.
  const looks = new Signal<number>()
  const look = ({ mtimeMs }: Stats): void => looks.push(mtimeMs)
  watchFile(file, { interval: 20 }, look)
  t.teardown(() => unwatchFile(file, look))
  // The first look may come after the first change: repeat it. Also keeps the process alive, which the watcher does not.
  let second = 1_700_000_000
  const touching = setInterval(() => utimesSync(file, second, second++), 50)
  await looks.next()
  clearInterval(touching)
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(alive))

  const seen = async (mtimeMs: number): Promise<number> => {
    changes = 0
    while (await looks.next() !== mtimeMs);
    return changes
  }

  writeFileSync(file, 'two')
  t.ok(await seen(statSync(file).mtimeMs) > 0, 'written in place')

  writeFileSync(join(folder, 'next.yaml'), 'three')
  renameSync(join(folder, 'next.yaml'), file)
  t.ok(await seen(statSync(file).mtimeMs) > 0, 'another file in its place')

  rmSync(file)
  t.equal(await seen(0), 0, 'a file that is gone is no change')

  mkdirSync(join(folder, 'mounted'))
  writeFileSync(join(folder, 'mounted', 'gateway.yaml'), 'four')
  symlinkSync(join('mounted', 'gateway.yaml'), file)
  t.ok(await seen(statSync(file).mtimeMs) > 0, 'a link to another file in its place')
})
