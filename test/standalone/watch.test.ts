import { execFileSync } from 'node:child_process'
import { mkdirSync, renameSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { watchConfig } from '../../plugins/standalone/watch.js'
import { Signal } from '../helpers/upstream.js'

const someLooksMs = 200

t.test('a change is seen, however the file is replaced', async (t) => {
  const folder = t.testdir({ 'gateway.yaml': 'one' })
  const file = join(folder, 'gateway.yaml')
  const changes = new Signal<void>()
  let count = 0
  const end = watchConfig(file, 20, () => {
    count += 1
    changes.push()
  })
  t.teardown(end)
  // The watcher does not keep the process alive.
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(alive))
  const replace = (text: string): void => {
    writeFileSync(join(folder, 'next.yaml'), text)
    renameSync(join(folder, 'next.yaml'), file)
  }

  writeFileSync(file, 'two')
  await changes.next()
  t.pass('written in place')

  replace('three')
  await changes.next()
  t.pass('another file in its place')

  const { atime, mtime } = statSync(file)
  replace('thref')
  utimesSync(file, atime, mtime)
  await changes.next()
  t.pass('another one of the same size and the same time')

  writeFileSync(file, 'thref')
  rmSync(file)
  await pause(someLooksMs)
  t.equal(count, 3, 'the same text and a file that is gone are no change')

  mkdirSync(join(folder, 'mounted'))
  writeFileSync(join(folder, 'mounted', 'gateway.yaml'), 'four')
  symlinkSync(join('mounted', 'gateway.yaml'), file)
  await changes.next()
  t.pass('a link to another file in its place')

  end()
  writeFileSync(file, 'five')
  await pause(someLooksMs)
  t.equal(count, 4, 'nothing after its end')
})

t.test('what is no file is told once, and not waited for', async (t) => {
  const folder = t.testdir({ 'gateway.yaml': 'one' })
  const file = join(folder, 'gateway.yaml')
  const changes = new Signal<void>()
  let count = 0
  t.teardown(watchConfig(file, 20, () => {
    count += 1
    changes.push()
  }))
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(alive))
  execFileSync('mkfifo', [join(folder, 'pipe')])
  renameSync(join(folder, 'pipe'), file)
  await changes.next()
  await pause(someLooksMs)
  t.equal(count, 1)
  rmSync(file)
  writeFileSync(file, 'two')
  await changes.next()
})

t.test('a watch that begins with what is no file sees the file that comes', async (t) => {
  const file = join(t.testdir({}), 'gateway.yaml')
  execFileSync('mkfifo', [file])
  const changes = new Signal<void>()
  t.teardown(watchConfig(file, 20, () => changes.push()))
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(alive))
  rmSync(file)
  writeFileSync(file, 'one')
  await changes.next()
})

t.test('a file that is not there yet is seen when it comes', async (t) => {
  const file = join(t.testdir({}), 'gateway.yaml')
  const changes = new Signal<void>()
  t.teardown(watchConfig(file, 20, () => changes.push()))
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(alive))
  writeFileSync(file, 'one')
  await changes.next()
})

t.test('a change is seen while another file is missing, and that one when it is there', async (t) => {
  const folder = t.testdir({ 'gateway.yaml': 'one', 'prices.yaml': 'prices' })
  const [file, prices] = [join(folder, 'gateway.yaml'), join(folder, 'prices.yaml')]
  const changes = new Signal<void>()
  let count = 0
  t.teardown(watchConfig(file, 20, () => {
    count += 1
    changes.push()
  }, () => [prices]))
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(alive))

  rmSync(prices)
  await pause(someLooksMs)
  t.equal(count, 0, 'it is no change by itself')
  writeFileSync(file, 'two')
  await changes.next()
  writeFileSync(prices, 'prices')
  await pause(someLooksMs)
  t.equal(count, 1, 'back as it was')
  writeFileSync(prices, 'other prices')
  await changes.next()
})
