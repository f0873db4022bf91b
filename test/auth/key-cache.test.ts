import t from 'tap'
import { KeyCache, type KeyCacheOptions, type Load } from '../../plugins/auth/key-cache.js'
import type { Key } from '../../plugins/core/types.js'

const defaults: KeyCacheOptions = {
  max: 100, ttlMs: 30_000, negativeMax: 10, negativeTtlMs: 5_000, staleMs: 60_000, maxLoads: 4, maxLoadsPerSecond: 100_000,
}

function key (id: string, group = 'g'): Key {
  return { id, group, disabled: false, expiresAt: null, limits: {} }
}

interface Rig {
  cache: KeyCache
  told: string[]
  /** How long the look-ups took. */
  seconds: number[]
  clock: { now: number }
}

function build (options: Partial<KeyCacheOptions> = {}): Rig {
  const told: string[] = []
  const seconds: number[] = []
  const clock = { now: 1_000 }
  const onLookup = (result: string, took?: number): void => {
    told.push(result)
    if (took !== undefined) seconds.push(took)
  }
  return { cache: new KeyCache({ ...defaults, ...options }, onLookup, () => clock.now), told, seconds, clock }
}

/** A store whose answers are given by hand. */
function store (): { load: Load, asked: string[], answer: (key: Key | null) => void, fail: (error: Error) => void } {
  const waiting: { resolve: (key: Key | null) => void, reject: (error: Error) => void }[] = []
  const asked: string[] = []
  const load: Load = (digest) => {
    asked.push(digest)
    return new Promise((resolve, reject) => waiting.push({ resolve, reject }))
  }
  return { load, asked, answer: (found) => waiting.shift()?.resolve(found), fail: (error) => waiting.shift()?.reject(error) }
}

const turn = async (): Promise<void> => { await new Promise(setImmediate) }

t.test('a key is believed for its time from its load, however often it is used', async (t) => {
  const { cache, told, clock } = build()
  t.equal(cache.peek('d'), undefined)
  await cache.load('d', async () => key('a'))
  for (let i = 0; i < 29; i += 1) {
    clock.now += 1_000
    t.match(cache.peek('d'), { id: 'a' })
  }
  clock.now += 1_000
  t.equal(cache.peek('d'), undefined)
  t.strictSame([...new Set(told)], ['miss', 'hit'])
})

t.test('the time begins when the store was asked, not when it answered', async (t) => {
  const { cache, clock } = build()
  const { load, answer } = store()
  const loading = cache.load('d', load)
  await turn()
  clock.now += 20_000
  answer(key('a'))
  await loading
  clock.now += 9_999
  t.match(cache.peek('d'), { id: 'a' })
  clock.now += 1
  t.equal(cache.peek('d'), undefined)
})

t.test('an unknown key is remembered for a shorter time, in a place of its own', async (t) => {
  const { cache, told, clock } = build({ max: 5 })
  await cache.load('good', async () => key('a'))
  for (let i = 0; i < 10_000; i += 1) await cache.load(`bad${i}`, async () => null)
  t.match(cache.peek('good'), { id: 'a' }, '10,000 made-up keys did not evict a good one')
  t.strictSame(cache.sizes, { positive: 1, negative: 10 })
  t.equal(cache.peek('bad9999'), null)
  clock.now += 5_000
  t.equal(cache.peek('bad9999'), undefined)
  t.ok(told.includes('negative_hit'))
  await cache.load('good', async () => null)
  t.equal(cache.peek('good'), null, 'a key that is gone')
  await cache.load('good', async () => key('b'))
  t.match(cache.peek('good'), { id: 'b' }, 'a key that is back')
  t.strictSame(cache.sizes, { positive: 1, negative: 9 }, 'in one place alone')
})

t.test('a thousand requests with one key ask the store once', async (t) => {
  const { cache, told } = build()
  const { load, asked, answer } = store()
  const all = Array.from({ length: 1_000 }, () => cache.load('d', load))
  await turn()
  answer(key('a'))
  for (const found of await Promise.all(all)) t.equal(found?.id, 'a')
  t.strictSame(asked, ['d'])
  t.equal(told.filter((result) => result === 'coalesced').length, 999)
})

t.test('an answer that was under way when its key changed is asked for again', async (t) => {
  const { cache } = build()
  const changes = [{ id: 'a' }, { group: 'g' }, { digest: 'd' }, { group: '*' }]
  for (const change of changes) {
    const { load, asked, answer } = store()
    const loading = cache.load('d', load)
    await turn()
    cache.invalidate(change)
    answer(key('a'))
    await turn()
    t.equal(asked.length, 2, JSON.stringify(change))
    answer(key('a', 'other'))
    t.match(await loading, { group: 'other' })
    t.match(cache.peek('d'), { group: 'other' }, 'the old one is never served')
    cache.invalidate({ digest: 'd' })
  }
})

t.test('a change that is told while the store is being asked counts, too', async (t) => {
  const { cache } = build()
  let asked = 0
  const load: Load = async () => {
    asked += 1
    if (asked === 1) cache.invalidate({ digest: 'd' })
    return key('a', asked === 1 ? 'old' : 'new')
  }
  t.match(await cache.load('d', load), { group: 'new' })
})

t.test('how long the store took is told, whether it answered or not', async (t) => {
  const { cache, seconds, clock } = build()
  const { load, answer, fail } = store()
  for (const end of [() => answer(key('a')), () => fail(new Error('down'))]) {
    const loading = cache.load('d', load)
    await turn()
    clock.now += 250
    end()
    await loading
  }
  t.strictSame(seconds, [0.25, 0.25])
})

t.test('a change of another key sends nobody back', async (t) => {
  const { cache } = build()
  const { load, asked, answer } = store()
  const loading = cache.load('d', load)
  await turn()
  cache.invalidate({ id: 'other' })
  cache.invalidate({ digest: 'other' })
  answer(key('a'))
  t.match(await loading, { id: 'a' })
  t.equal(asked.length, 1)
})

t.test('an unknown key may have been made while the store was asked', async (t) => {
  const { cache } = build()
  for (const [change, times] of [[{ digest: 'new' }, 2], [{ id: 'a' }, 2], [{ digest: 'other' }, 1]] as const) {
    const { load, asked, answer } = store()
    const loading = cache.load('new', load)
    await turn()
    cache.invalidate(change)
    answer(null)
    await turn()
    if (times === 2) answer(key('a'))
    t.equal((await loading)?.id, times === 2 ? 'a' : undefined)
    t.equal(asked.length, times)
    cache.invalidate({ group: '*' })
  }
})

t.test('a change forgets what it concerns and every unknown key', async (t) => {
  const { cache } = build()
  await cache.load('d1', async () => key('a', 'g1'))
  await cache.load('d2', async () => key('b', 'g2'))
  await cache.load('d3', async () => null)
  cache.invalidate({ id: 'a' })
  t.strictSame([cache.peek('d1'), cache.peek('d2')?.id, cache.peek('d3')], [undefined, 'b', undefined])
  cache.invalidate({ group: '*' })
  t.strictSame(cache.sizes, { positive: 0, negative: 0 })
})

t.test('a stale key is served only while the store fails, and not for ever', async (t) => {
  const { cache, told, clock } = build()
  const down = async (): Promise<Key | null> => { throw new Error('down') }
  await cache.load('d', async () => key('a'))
  clock.now += 30_000
  t.match(await cache.load('d', down), { id: 'a' })
  clock.now += 59_999
  t.match(await cache.load('d', down), { id: 'a' })
  clock.now += 1
  await t.rejects(cache.load('d', down), { message: 'down' })
  await t.rejects(cache.load('never seen', down), { message: 'down' })
  t.strictSame(told, ['miss', 'stale', 'stale', 'error', 'error'])
  await cache.load('d', async () => key('b'))
  clock.now += 30_000
  cache.invalidate({ id: 'b' })
  await t.rejects(cache.load('d', down), { message: 'down' }, 'nor one that was taken back')
})

t.test('where changes may have been missed, a known key is asked for again, and stands in while the store fails', async (t) => {
  const { cache, told, clock } = build()
  const down = async (): Promise<Key | null> => { throw new Error('down') }
  await cache.load('a', async () => key('a'))
  await cache.load('b', async () => key('b'))
  await cache.load('none', async () => null)
  clock.now += 1_000
  cache.invalidate({ group: '*', missed: true })
  t.strictSame([cache.peek('a'), cache.peek('b'), cache.peek('none')], [undefined, undefined, undefined])
  t.match(await cache.load('a', down), { id: 'a' })
  await cache.load('a', async () => key('a', 'other'))
  t.match(cache.peek('a'), { group: 'other' })
  t.equal(await cache.load('b', async () => null), null)
  await cache.load('b', async () => key('b'))
  cache.invalidate({ group: '*', missed: true })
  clock.now += 89_999
  t.match(await cache.load('b', down), { id: 'b' })
  cache.invalidate({ group: '*', missed: true })
  clock.now += 1
  await t.rejects(cache.load('b', down), { message: 'down' }, 'no longer than without it')
  t.strictSame(told.filter((result) => result === 'stale').length, 2)
})

t.test('look-ups at the same time are bounded; beyond that a held key is served, others wait for their turn', async (t) => {
  const { cache, told, clock } = build()
  await cache.load('good', async () => key('a'))
  clock.now += 30_000
  const { load, answer } = store()
  const flood = ['1', '2', '3', '4'].map((digest) => cache.load(digest, load))
  await t.rejects(cache.load('5', load), { message: 'too many key look-ups at the same time' })
  t.match(await cache.load('good', load), { id: 'a' })
  t.strictSame(told, ['miss', 'error', 'stale'])
  await turn()
  for (let i = 0; i < 4; i += 1) answer(null)
  await Promise.all(flood)
  const later = cache.load('5', load)
  await turn()
  answer(key('e'))
  t.match(await later, { id: 'e' })
})

t.test('look-ups of keys that are not held are bounded by the second; what is held is always renewed', async (t) => {
  const { cache, clock, told } = build({ maxLoadsPerSecond: 10 })
  await cache.load('good', async () => key('a'))
  const flood = async (seconds: number): Promise<number> => {
    let asked = 0
    for (let i = 0; i < 1_000 * seconds; i += 1) {
      clock.now += 1
      const load: Load = async () => { asked += 1; return null }
      await cache.load(`bad${clock.now}`, load).catch((error) => t.equal(error.message, 'too many look-ups of unknown keys'))
    }
    return asked
  }
  const first = await flood(1)
  t.ok(first >= 10 && first <= 20, `${first} at first`)
  t.equal(await flood(3), 30)
  t.equal(told.filter((result) => result === 'error').length, 4_000 - first - 30)
  clock.now += 30_000
  await flood(1)
  t.match(await cache.load('good', async () => key('b')), { id: 'b' }, 'the store was asked')
  cache.invalidate({ group: '*' })
  await flood(1)
  t.match(await cache.load('good', async () => null), null, 'also where nothing of it is believed any more')
  await t.rejects(cache.load('good2', async () => key('c')), { message: 'too many look-ups of unknown keys' })
  clock.now += 3_600_000
  t.ok(await flood(1) <= 20, 'a long pause saves up no more than a second')
})

t.test('a load that throws at once is one that fails, and the next one is asked', async (t) => {
  const { cache } = build()
  await t.rejects(cache.load('d', () => { throw new Error('at once') }), { message: 'at once' })
  t.match(await cache.load('d', async () => key('a')), { id: 'a' })
})

t.test('it runs on the process\'s own clock', async (t) => {
  const cache = new KeyCache(defaults, () => {})
  await cache.load('d', async () => key('a'))
  t.match(cache.peek('d'), { id: 'a' })
})

t.test('of several keys that were revoked, each is asked for at once', async (t) => {
  const { cache } = build({ maxLoadsPerSecond: 2 })
  for (const id of ['a', 'b']) await cache.load(id, async () => key(id))
  for (const id of ['a', 'b']) cache.invalidate({ id })
  for (const id of ['a', 'b']) t.equal(await cache.load(id, async () => null), null, id)
})

t.test('a key that was revoked is asked for no more often than one that never was', async (t) => {
  const { cache } = build({ maxLoadsPerSecond: 1, negativeTtlMs: 0 })
  await cache.load('d', async () => key('a'))
  cache.invalidate({ digest: 'd' })
  t.equal(await cache.load('d', async () => null), null, 'what became of it is asked at once')
  await t.rejects(cache.load('d', async () => null), /too many look-ups of unknown keys/)
})
