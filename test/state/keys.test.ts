import t from 'tap'
import type { KeyChange, KeyRecord } from '../../plugins/state/types.js'
import { engines } from './engines.js'

function record (id: string, digest: string): KeyRecord {
  return { id, digest, group: 'chat', disabled: false, expiresAt: null, limits: { balance: 5 }, label: null, createdAt: 1 }
}

const first = record('one', 'a'.repeat(64))
const second = record('two', 'b'.repeat(64))

for (const engine of engines) {
  t.test(`keys in ${engine.name}`, { skip: engine.skip }, async (t) => {
    const { state: { keys }, another, close } = await engine.open()
    t.teardown(close)

    t.test('are found by digest, and only by that', async (t) => {
      t.equal(await keys.find(first.digest), null)
      t.equal(await keys.create(first), true)
      t.equal(await keys.create(second), true)
      t.same(await keys.find(first.digest), first)
      t.equal(await keys.find(first.id), null)
    })

    t.test('are read by id, and nobody is told', async (t) => {
      const heard: KeyChange[] = []
      const forget = keys.onChange((change) => heard.push(change))
      t.same(await keys.read(first.id), first)
      t.equal(await keys.read('nobody'), null)
      await keys.update(second.id, {})
      const told = (): KeyChange[] => heard.filter(({ group }) => group !== '*')
      await until(() => told().length >= 2)
      t.same(told(), Array(2).fill({ id: second.id, digest: second.digest }))
      forget()
    })

    t.test('are never replaced by a new one with their id or digest', async (t) => {
      t.equal(await keys.create({ ...second, digest: 'c'.repeat(64) }), false)
      t.equal(await keys.create({ ...second, id: 'three' }), false)
      t.same(await keys.find(second.digest), second)
      t.equal(await keys.find('c'.repeat(64)), null, 'nor is any part of the new one kept')
      t.equal(await keys.read('three'), null)
    })

    t.test('are revoked and rotated', async (t) => {
      t.equal(await keys.update('nobody', { disabled: true }), null)
      t.match(await keys.update('one', { disabled: true }), { id: 'one', disabled: true, group: 'chat' })
      t.match(await keys.find(first.digest), { disabled: true })
      const digest = 'd'.repeat(64)
      t.match(await keys.update('one', { digest, disabled: false, limits: { balance: 9 } }), { digest, disabled: false })
      t.equal(await keys.find(first.digest), null)
      t.match(await keys.find(digest), { id: 'one', limits: { balance: 9 } })
    })

    t.test('keep what two change of them at the same time', async (t) => {
      const wishes = [{ balance: 7 }, { concurrency: 3 }, { requestsPerMinute: 5 }]
      await Promise.all(wishes.map(async (wish) => await keys.update('one', ({ limits }) => ({ limits: { ...limits, ...wish } }))))
      t.same((await keys.read('one'))?.limits, { balance: 7, concurrency: 3, requestsPerMinute: 5 })
    })

    t.test('are listed', async (t) => {
      const ids: string[] = []
      for await (const { id } of keys.list()) ids.push(id)
      t.same(ids.sort(), ['one', 'two'])
    })

    t.test('with labels tell them, and are changed like any other', async (t) => {
      const labelled = { ...record('labelled', 'f'.repeat(64)), label: 'team=search' }
      t.equal(await keys.create(labelled), true)
      t.match(await keys.find(labelled.digest), { labels: { team: 'search' } })
      t.match(await keys.update('labelled', { disabled: true }), { disabled: true })
      t.match(await keys.update('labelled', { label: 'team=other' }), { label: 'team=other' })
      t.match(await keys.find(labelled.digest), { disabled: true, labels: { team: 'other' } })
    })

    t.test('tell of every change, to whoever still listens', async (t) => {
      const heard: KeyChange[] = []
      const other: KeyChange[] = []
      // What was told of an earlier key may come late, and whoever begins to listen is told that all may have changed.
      const noted = (list: KeyChange[]) => (change: KeyChange): void => {
        if (change.id !== 'labelled' && change.group !== '*') list.push(change)
      }
      const forget = keys.onChange(noted(heard))
      const listening = another === null ? keys : (await another()).keys
      listening.onChange(noted(other))
      await keys.update('two', { digest: 'e'.repeat(64) })
      const both = [{ id: 'two', digest: second.digest }, { id: 'two', digest: 'e'.repeat(64) }]
      await until(() => heard.length >= 2 && other.length >= 2)
      t.same(heard, both)
      t.same(other, both)
      forget()
      await keys.update('two', {})
      await until(() => other.length >= 4)
      t.equal(heard.length, 2)
    })
  })
}

async function until (condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5))
}
