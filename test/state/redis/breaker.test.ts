import t from 'tap'
import { StoreDownError } from '../../../plugins/core/balances/store-down.js'
import { Breaker } from '../../../plugins/state/redis/breaker.js'

interface Given {
  readonly answers?: () => boolean
  readonly maxPending?: number
  readonly trouble?: () => Error
}

function breaker (given: Given = {}): { breaker: Breaker, probes: () => number, recovered: Promise<void> } {
  let probes = 0
  let recover = (): void => {}
  const recovered = new Promise<void>((resolve) => { recover = resolve })
  const made = new Breaker({
    timeoutMs: 20,
    maxPending: given.maxPending ?? 10,
    probeEveryMs: 5,
    answerOf: (error) => Object(error).code === 'WRONGTYPE' ? new StoreDownError('failed', { cause: error }) : null,
    probe: async () => {
      probes += 1
      if (given.answers?.() !== true) throw new Error('no')
    },
    trouble: given.trouble ?? (() => null),
    onRecovery: recover,
  })
  return { breaker: made, probes: () => probes, recovered }
}

// The breaker's own timers keep no process alive.
const alive = setInterval(() => {}, 1_000)
t.teardown(() => clearInterval(alive))

const never = new Promise<never>(() => {})

t.test('an answer passes', async (t) => {
  t.equal(await breaker().breaker.run(async () => 7), 7)
})

t.test('whoever is not let through hears why', async (t) => {
  const { breaker: made } = breaker()
  await t.rejects(made.run(async () => { throw new Error('READONLY') }), { asked: true, cause: { message: 'READONLY' } })
  await t.rejects(made.run(async () => 7), { asked: false, cause: { message: 'READONLY' } })
  made.close()
  const { breaker: cut } = breaker({ trouble: () => new Error('connect ECONNREFUSED') })
  await t.rejects(cut.run(async () => { throw new Error('not writable') }), { asked: true, cause: { message: 'not writable' } })
  await t.rejects(cut.run(async () => 7), { asked: false, cause: { message: 'connect ECONNREFUSED' } }, 'the connection knows better')
  cut.close()
})

t.test('silence costs its time once, then nothing, until a probe is answered', async (t) => {
  let answers = false
  const { breaker: made, probes, recovered } = breaker({ answers: () => answers })
  await t.rejects(made.run(async () => await never), { code: 'LLM_GATEWAY_STORE_DOWN', asked: true, message: /within 20 ms/ })
  let asked = 0
  const count = async (): Promise<number> => { asked += 1; return asked }
  await t.rejects(made.run(count), { asked: false, message: /does not answer/ })
  t.equal(asked, 0)
  while (probes() < 3) await new Promise((resolve) => setTimeout(resolve, 5))
  answers = true
  await recovered
  t.equal(await made.run(count), 1)
})

t.test('a probe that is never answered is followed by others', async (t) => {
  let probes = 0
  let recover = (): void => {}
  const recovered = new Promise<void>((resolve) => { recover = resolve })
  const made = new Breaker({
    timeoutMs: 20,
    maxPending: 10,
    probeEveryMs: 5,
    answerOf: () => null,
    probe: async () => await (++probes < 3 ? never : null),
    trouble: () => null,
    onRecovery: recover,
  })
  await t.rejects(made.run(async () => await never), { message: /within 20 ms/ })
  await recovered
  t.equal(probes, 3)
})

t.test('an error is the cause of its own', async (t) => {
  const { breaker: made } = breaker()
  t.teardown(() => made.close())
  const cause = new Error('gone')
  await t.rejects(made.run(async () => { throw cause }), { name: 'StoreDownError', asked: true, cause })
})

t.test('an error that is an answer is told, and stops nobody else', async (t) => {
  const { breaker: made, probes } = breaker()
  const cause = Object.assign(new Error('another kind of value'), { code: 'WRONGTYPE' })
  await t.rejects(made.run(async () => { throw cause }), { name: 'StoreDownError', asked: true, cause })
  t.equal(await made.run(async () => 7), 7)
  t.equal(probes(), 0)
})

t.test('what fails together asks for one probe at a time', async (t) => {
  const { breaker: made, probes, recovered } = breaker({ answers: () => true })
  const failing = [1, 2, 3].map(async () => await made.run(async () => { throw new StoreDownError('is gone') }))
  for (const each of await Promise.allSettled(failing)) {
    t.match(each, { status: 'rejected', reason: { message: 'the state store is gone' } })
  }
  await recovered
  await new Promise((resolve) => setTimeout(resolve, 20))
  t.equal(probes(), 1)
})

t.test('only so many may wait', async (t) => {
  const { breaker: made } = breaker({ maxPending: 1 })
  for (let times = 0; times < 2; times += 1) {
    let release = (): void => {}
    const first = made.run(async () => await new Promise<void>((resolve) => { release = resolve }))
    await t.rejects(made.run(async () => {}), { asked: false, message: /overloaded/ })
    release()
    await first
    t.equal(await made.run(async () => 1), 1)
  }
})

t.test('a busy process does not blame the store', async (t) => {
  const { breaker: made } = breaker()
  const answered = made.run(async () => await new Promise<string>((resolve) => setTimeout(() => setImmediate(resolve, 'here'), 1)))
  const until = performance.now() + 60
  while (performance.now() < until) { /* the event loop stands still */ }
  t.equal(await answered, 'here')
})

t.test('closed, it asks no more', async (t) => {
  const { breaker: made, probes } = breaker()
  await t.rejects(made.run(async () => { throw new Error('no') }))
  made.close()
  await new Promise((resolve) => setTimeout(resolve, 20))
  t.equal(probes(), 0)
  await t.rejects(made.run(async () => 1), { message: /does not answer/ })
  const { breaker: well } = breaker()
  well.close()
  await t.rejects(well.run(async () => 1), { asked: false, message: /does not answer/ })
})

t.test('closed while a probe is under way, it takes no answer and asks no more', async (t) => {
  for (const ends of ['well', 'badly']) {
    let probes = 0
    let recovered = false
    let begun = (): void => {}
    const underWay = new Promise<void>((resolve) => { begun = resolve })
    let end = (): void => {}
    const made = new Breaker({
      timeoutMs: 1_000,
      maxPending: 10,
      probeEveryMs: 1,
      answerOf: () => null,
      probe: async () => {
        probes += 1
        begun()
        await new Promise<void>((resolve, reject) => { end = ends === 'well' ? resolve : reject })
      },
      trouble: () => null,
      onRecovery: () => { recovered = true },
    })
    await t.rejects(made.run(async () => { throw new Error('no') }))
    await underWay
    made.close()
    end()
    await new Promise((resolve) => setTimeout(resolve, 20))
    t.equal(probes, 1)
    t.equal(recovered, false)
    await t.rejects(made.run(async () => 1), { message: /does not answer/ })
  }
})
