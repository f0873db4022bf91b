import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { fileSecret, fixedSecret, functionSecret, type CredentialFunction } from '../../plugins/upstreams/secret.js'

// A gateway has its port open while it waits for a secret, which keeps no process from its end.
const open = setInterval(() => {}, 60_000)
t.teardown(() => clearInterval(open))

const unavailable = { code: 'upstream_credential_unavailable', statusCode: 503 }

t.test('a fixed secret is there at once, and never another one', async (t) => {
  t.equal(fixedSecret('s3').current(), 's3')
  t.equal(fixedSecret(null).current(), null)
  t.equal(fixedSecret('s3').known(), 's3')
  t.equal(fixedSecret('s3').renew, null)
})

t.test('one question at a time, and none while the answer is fresh', async (t) => {
  let now = 1_000_000
  let asked = 0
  const secret = functionSecret(async () => {
    asked += 1
    await wait(5)
    return { secret: `s${asked}`, expiresAt: now + 3_600_000 }
  }, { now: () => now, wallNow: () => now })
  t.equal(secret.known(), null)
  t.strictSame(await Promise.all([secret.current(), secret.current(), secret.current()]), ['s1', 's1', 's1'])
  t.equal(secret.known(), 's1')
  t.equal(secret.current(), 's1')
  t.equal(asked, 1)
  now += 3_600_000 - 119_000
  t.equal(secret.current(), 's1', 'the last two minutes: the old one, while another is on its way')
  t.equal(secret.current(), 's1')
  await wait(30)
  t.equal(asked, 2)
  t.equal(secret.current(), 's2')
  now += 3_600_000 - 20_000
  t.equal(await secret.current(), 's3', 'the last half minute: the new one is waited for')
})

t.test('one that lasts a short time is renewed after half of it, and waited for in the last eighth', async (t) => {
  let now = 0
  let asked = 0
  const secret = functionSecret(async () => {
    asked += 1
    return { secret: `s${asked}`, expiresAt: now + 80_000 }
  }, { now: () => now, wallNow: () => now })
  await secret.current()
  now += 39_999
  t.strictSame([secret.current(), asked], ['s1', 1])
  now += 2
  t.strictSame([secret.current(), asked], ['s1', 2])
  await wait(10)
  now += 69_999
  t.equal(secret.current(), 's2')
  await wait(10)
  now += 70_001
  t.equal(await secret.current(), 's4')
})

t.test('a text is used for half a minute, and another one asked for behind the next request', async (t) => {
  let now = 0
  let asked = 0
  const secret = functionSecret(() => { asked += 1; return `s${asked}` }, { now: () => now })
  t.strictSame([await secret.current(), asked], ['s1', 1])
  now += 29_999
  t.strictSame([secret.current(), asked], ['s1', 1])
  now += 1
  t.strictSame([secret.current(), asked], ['s1', 2])
})

t.test('while no other is to be had the old one is used as long as it lasts', async (t) => {
  let now = 1_000_000
  let works = true
  let asked = 0
  const secret = functionSecret(() => {
    asked += 1
    if (!works) throw new Error('s3cret is in here')
    return { secret: 's1', expiresAt: new Date(now + 3_600_000) }
  }, { now: () => now, wallNow: () => now })
  t.equal(await secret.current(), 's1')
  works = false
  now += 3_600_000 - 100_000
  t.equal(secret.current(), 's1')
  await wait(1)
  t.equal(secret.current(), 's1')
  t.equal(asked, 2, 'not asked again right after a failure')
  now += 80_000
  t.equal(await secret.current(), 's1')
  now += 30_000
  await t.rejects(Promise.resolve(secret.current()), unavailable)
  works = true
  await t.rejects(Promise.resolve(secret.current()), unavailable)
  t.equal(asked, 4, 'not asked again right after a failure')
  now += 1_000
  t.equal(await secret.current(), 's1')
})

t.test('a clock that is set back keeps no secret for longer', async (t) => {
  let now = 0
  let wall = 1_800_000_000_000
  const asked: string[] = []
  const clocks = { now: () => now, wallNow: () => wall }
  const ending = functionSecret(() => ({ secret: `s${asked.push('')}`, expiresAt: wall + 3_600_000 }), clocks)
  const text = functionSecret(() => `t${asked.push('')}`, { ...clocks, staleMs: 60_000 })
  let works = false
  const failing = functionSecret(() => works ? 'there' : '', clocks)
  t.strictSame([await ending.current(), await text.current()], ['s1', 't2'])
  await t.rejects(Promise.resolve(failing.current()), unavailable)
  works = true
  wall -= 7_200_000
  now += 3_600_000 - 20_000
  t.strictSame([await ending.current(), await text.current(), await failing.current()], ['s3', 't4', 'there'])
})

t.test('what is no secret is not sent', async (t) => {
  const cases: ReadonlyArray<readonly [what: string, ask: CredentialFunction]> = [
    ['blank', () => 'with blank'], ['empty', () => ''], ['ended', () => ({ secret: 's', expiresAt: 1 })],
    ['no end', () => Object({ secret: 's', expiresAt: 'soon' })],
    ['nothing', () => JSON.parse('null')], ['rejected', async () => await Promise.reject(new Error('no'))],
    ['never', async () => await new Promise(() => {})],
  ]
  for (const [what, ask] of cases) {
    await t.rejects(Promise.resolve(functionSecret(ask, { timeoutMs: 20 }).current()), unavailable, what)
  }
})

t.test('a secret that was refused is replaced once for all who had it', async (t) => {
  let now = 1_000_000
  let asked = 0
  const secret = functionSecret(async () => {
    asked += 1
    await wait(5)
    return `s${asked}`
  }, { now: () => now, wallNow: () => now })
  t.equal(await secret.current(), 's1')
  const renewed = await Promise.all(Array.from({ length: 100 }, async () => await secret.renew?.('s1')))
  t.strictSame(new Set(renewed), new Set(['s2']))
  t.equal(asked, 2)
  t.equal(await secret.renew?.('s1'), 's2', 'it was replaced already')
  t.equal(await secret.renew?.('s2'), 's2', 'not again right after')
  t.equal(asked, 2)
  now += 6_000
  t.equal(await secret.renew?.('s2'), 's3')
})

t.test('what was asked for before a refusal, and comes after its replacement, does not replace that', async (t) => {
  let now = 1_000_000
  let answer = (_: string): void => {}
  const answers = ['old', new Promise<string>((resolve) => { answer = resolve }), 'new']
  const secret = functionSecret(async () => await (answers.shift() ?? 'none'), { now: () => now, wallNow: () => now })
  t.equal(await secret.current(), 'old')
  now += 31_000
  t.equal(secret.current(), 'old', 'asks in the background')
  t.equal(await secret.renew?.('old'), 'new')
  answer('old')
  await wait(5)
  t.equal(secret.current(), 'new')
})

t.test('a file is read again when it changes, also through a link that is swapped above it', async (t) => {
  let now = 0
  const folder = t.testdir({ one: { token: 'first\n' }, two: { token: 'second' } })
  await symlink(join(folder, 'one'), join(folder, 'data'))
  await mkdir(join(folder, 'mount'))
  await symlink(join('..', 'data', 'token'), join(folder, 'mount', 'token'))
  const secret = fileSecret(join(folder, 'mount', 'token'), { now: () => now, wallNow: () => now })
  t.equal(await secret.current(), 'first')
  await symlink(join(folder, 'two'), join(folder, 'next'))
  await rename(join(folder, 'next'), join(folder, 'data'))
  t.equal(secret.current(), 'first', 'it was read in this second')
  now += 1_001
  t.equal(secret.current(), 'first')
  while (secret.current() === 'first') await wait(1)
  t.equal(secret.current(), 'second')
  await writeFile(join(folder, 'two', 'token'), 'third')
  now += 2_000
  t.equal(await secret.renew?.('second'), 'third', 'a refusal reads it at once')
  await t.rejects(Promise.resolve(fileSecret(join(folder, 'none')).current()), unavailable)
})

t.test('what a file held before a pause is not sent after it', async (t) => {
  let now = 0
  const folder = t.testdir({ token: 'first' })
  const secret = fileSecret(join(folder, 'token'), { now: () => now, wallNow: () => now })
  t.equal(await secret.current(), 'first')
  await writeFile(join(folder, 'token'), 'second')
  now += 3_600_000
  t.strictSame(await Promise.all([secret.current(), secret.current()]), ['second', 'second'])
  await rm(join(folder, 'token'))
  now += 3_600_000
  t.equal(await secret.current(), 'second', 'the last one where there is no file any more')
  t.equal(secret.current(), 'second', 'and the next request does not wait for it')
})

t.test('a disk that stalls holds a request for a moment, and the next ones not at all', async (t) => {
  let now = 0
  let stalls = false
  const ask = async () => stalls ? await new Promise<string>(() => {}) : 'first'
  const secret = functionSecret(ask, { now: () => now, keepMs: 1_000, staleMs: 2_000, patienceMs: 20, pauseMs: 1_000 })
  t.equal(await secret.current(), 'first')
  stalls = true
  now += 5_000
  t.equal(await secret.current(), 'first')
  t.equal(secret.current(), 'first')
})

t.test('the first secret is waited for, however little patience there is with an old one at hand', async (t) => {
  const ask = async (): Promise<string> => {
    await wait(50)
    return 'first'
  }
  t.equal(await functionSecret(ask, { patienceMs: 1 }).current(), 'first')
})
