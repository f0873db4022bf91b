import t from 'tap'
import { Breaker, failureRules, refusalRules } from '../../plugins/upstreams/breaker.js'
import { Account, HealthRegistry, healthRegistry } from '../../plugins/upstreams/health.js'
import { newMember } from '../../plugins/upstreams/member.js'
import { Visit } from '../../plugins/upstreams/visit.js'
import { upstreamOf } from './request.js'

t.test('failures in a row open it, a single success before closes it for all', async (t) => {
  const breaker = new Breaker(failureRules)
  for (let i = 0; i < 4; i += 1) breaker.failed(0, false)
  t.ok(breaker.allows(0))
  breaker.succeeded()
  for (let i = 0; i < 5; i += 1) {
    t.ok(breaker.allows(0))
    breaker.failed(0, false)
  }
  t.ok(breaker.isOpen)
  t.notOk(breaker.allows(999))
  t.ok(breaker.allows(1_000))
})

t.test('one real request tells, longer each time, a minute at most', async (t) => {
  const breaker = new Breaker({ ...failureRules, failures: 1 })
  let now = 0
  breaker.failed(now, false)
  const waits: number[] = []
  for (let i = 0; i < 8; i += 1) {
    waits.push(breaker.until - now)
    now = breaker.until
    t.ok(breaker.allows(now))
    t.ok(breaker.enter(now))
    t.notOk(breaker.allows(now), 'one at a time')
    t.notOk(breaker.enter(now))
    breaker.failed(now, false)
    t.equal(breaker.dueAt, now, 'what was on its way before tells nothing')
    breaker.failed(now, true)
  }
  t.strictSame(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000])
  now = breaker.until
  t.ok(breaker.enter(now))
  breaker.undecided(true)
  t.ok(breaker.allows(now), 'a caller that left told nothing')
  t.ok(breaker.enter(now))
  breaker.succeeded()
  t.notOk(breaker.isOpen)
  breaker.failed(now, false)
  t.equal(breaker.until - now, 1_000, 'from the beginning')
})

t.test('a request that was to tell leaves nothing behind once its caller has left', async (t) => {
  const breaker = new Breaker({ ...failureRules, failures: 1 })
  breaker.failed(0, false)
  t.ok(breaker.enter(1_000))
  breaker.undecided(true)
  breaker.failed(1_500, false, 10_000)
  t.equal(breaker.dueAt, 11_500, 'an earlier one was told when to come again')
  t.ok(breaker.enter(11_500))
  breaker.succeeded()
  breaker.undecided(true)
  t.equal(breaker.until, 0, 'another one has closed it')
})

t.test('a request that is to tell and does not keeps others away no longer than was waited for it', async (t) => {
  const breaker = new Breaker({ ...failureRules, failures: 1 })
  breaker.failed(0, false)
  breaker.failed(1_000, breaker.enter(1_000))
  t.equal(breaker.until, 3_000)
  t.ok(breaker.enter(3_000))
  t.notOk(breaker.allows(4_999))
  t.equal(breaker.dueAt, 3_000)
  breaker.hurry(3_500)
  t.notOk(breaker.allows(4_999), 'one is on its way')
  t.ok(breaker.allows(5_000))
  t.ok(breaker.enter(5_000), 'the first one may hang')
  breaker.undecided(false)
  t.notOk(breaker.allows(5_000))
  breaker.undecided(true)
  t.ok(breaker.allows(5_000))
})

t.test('what answers and then breaks off is no success: the row of failures goes on, and the waits grow', async (t) => {
  const breaker = new Breaker(failureRules)
  const breakOff = (now: number): void => {
    breaker.enter(now)
    breaker.answered()
    breaker.failed(now, false)
  }
  for (let i = 0; i < 4; i += 1) breakOff(0)
  t.notOk(breaker.isOpen)
  breakOff(0)
  t.equal(breaker.until, 1_000)
  breakOff(1_000)
  t.equal(breaker.until, 3_000)
  breaker.enter(3_000)
  breaker.answered()
  breaker.completed()
  for (let i = 0; i < 4; i += 1) breakOff(3_000)
  t.notOk(breaker.isOpen, 'one that was completed ends the row')
})

t.test('whoever comes next is to tell, also before its time, once the request that was to tell has failed or was answered', async (t) => {
  const breaker = new Breaker({ ...failureRules, failures: 1 })
  t.notOk(breaker.enter(0), 'nobody while it is closed')
  t.ok(breaker.allows(0))
  breaker.failed(0, false)
  breaker.failed(1_000, breaker.enter(1_000))
  t.equal(breaker.dueAt, 3_000)
  t.ok(breaker.enter(2_000), 'where all are out, one is asked before its time')
  t.equal(breaker.dueAt, 2_000)
  breaker.answered()
  t.ok(breaker.allows(2_000))
  t.equal(breaker.until, 0)
  breaker.failed(2_000, false)
  t.equal(breaker.dueAt, 6_000)
  breaker.hurry(2_500)
  t.ok(breaker.allows(2_500))
  t.ok(breaker.enter(2_500))
})

t.test('that several have their reply begun ends no row of failures', async (t) => {
  const breaker = new Breaker({ ...failureRules, failures: 1 })
  breaker.failed(0, false)
  breaker.failed(1_000, breaker.enter(1_000))
  breaker.enter(3_000)
  breaker.answered()
  breaker.answered()
  breaker.failed(3_000, false)
  t.equal(breaker.until, 7_000)
})

t.test('a wait that its upstream names before it is out keeps nobody away', async (t) => {
  const breaker = new Breaker(failureRules)
  breaker.failed(0, false, 20_000)
  t.ok(breaker.allows(0))
})

t.test('what the upstream says itself is the least that is waited, and never shortens', async (t) => {
  const breaker = new Breaker({ ...failureRules, failures: 1 })
  breaker.failed(0, false, 20_000)
  t.equal(breaker.until, 20_000)
  breaker.failed(1_000, false, 5_000)
  t.equal(breaker.until, 20_000)
  breaker.failed(1_000, false, 30_000)
  t.equal(breaker.until, 31_000)
  breaker.hurry(2_000)
  t.equal(breaker.until, 2_000)
  breaker.hurry(3_000)
  t.equal(breaker.until, 2_000)
})

t.test('an account waits by model, and a later refusal never shortens it', async (t) => {
  const account = new Account('a')
  t.ok(account.allows('m', 0))
  account.cool('m', 20_000)
  account.cool('m', 5_000)
  t.notOk(account.allows('m', 19_999))
  t.ok(account.allows('m', 20_000))
  t.ok(account.allows('other', 0))
  t.strictSame(account.cooled(0), [['m', 20_000]])
  t.strictSame(account.cooled(20_000), [])
})

t.test('what a request tells of its upstream', async (t) => {
  const registry = new HealthRegistry()
  const upstream = upstreamOf({ url: 'http://h', account: 'shared' })
  const member = newMember(upstream, registry.of(upstream))
  const { health } = member
  const visit = (
    blames: 'upstream' | 'credential' | 'credential_model' | 'account_model' | null, now: number, waitMs: number | null = null
  ): void => {
    const visit = new Visit(member, 'm', now)
    visit.report({ blames, waitMs }, now)
    visit.end()
  }
  t.equal(registry.of(upstream), health, 'one for each upstream')
  t.equal(registry.of(upstreamOf({ url: 'http://h', account: 'shared' }, 'v')).account, health.account, 'upstreams of one account share it')
  visit('credential', 0)
  t.notOk(health.allows('m', 29_999), 'a refused credential is out for half a minute')
  t.notOk(health.allows('other', 29_999))
  t.equal(health.returnsAt('m'), 30_000)
  visit('credential', 30_000)
  t.notOk(health.allows('m', 89_999), 'longer each time')
  visit(null, 90_000)
  t.ok(health.allows('m', 90_000))
  visit('credential_model', 90_000)
  t.notOk(health.allows('m', 90_001))
  t.ok(health.allows('other', 90_001), 'a model that the credential may not use is out alone')
  visit('credential_model', 120_000)
  t.notOk(health.allows('m', 179_999), 'longer each time, too')
  visit(null, 180_000)
  t.ok(health.allows('m', 180_000))
  visit('account_model', 180_000, 10_000)
  t.notOk(health.account.allows('m', 189_999))
  t.ok(health.account.allows('m', 190_000))
  visit('account_model', 190_000)
  t.notOk(health.account.allows('m', 194_999), 'five seconds where the provider tells no time')
  t.ok(health.account.allows('m', 195_000))
  visit('account_model', 200_000, 1e12)
  t.equal(health.account.until('m'), 3_800_000, 'an hour at most')
  for (let times = 0; times < 10; times += 1) visit('upstream', 4_000_000, 1e12)
  t.equal(health.breaker.dueAt, 7_600_000, 'nor is a provider that fails believed for longer')
  for (const blames of [null, 'account_model', 'credential_model'] as const) {
    visit(blames, 8_000_000)
    for (let times = 0; times < 4; times += 1) visit('upstream', 8_000_000)
  }
  t.notOk(health.breaker.isOpen, 'any answer ends a row of failures')
  t.equal(health.active, 0)
  t.equal(member.load.active, 0)
})

t.test('a caller that leaves leaves what it was to tell to the next one', async (t) => {
  const registry = new HealthRegistry()
  const upstream = upstreamOf({ url: 'http://h' })
  const member = newMember(upstream, registry.of(upstream))
  const { breaker, credential } = member.health
  for (let i = 0; i < 5; i += 1) breaker.failed(0, false)
  credential.failed(0, false)
  member.health.modelBreaker('m').failed(0, false)
  const visit = new Visit(member, 'm', 40_000)
  t.ok(visit.isTry)
  t.notOk(member.health.allows('m', 40_000))
  t.equal(member.health.active, 1)
  visit.end()
  t.ok(member.health.allows('m', 40_000))
  const failing = new Visit(member, 'm', 40_000)
  failing.report({ blames: 'upstream', waitMs: null }, 40_000)
  t.notOk(breaker.allows(40_000))
  t.ok(credential.allows(40_000), 'a broken connection tells nothing of the credential')
  failing.report({ blames: 'upstream', waitMs: null }, 40_000)
  failing.end()
})

t.test('a request is the one that tells no longer than until its reply has begun', async (t) => {
  const upstream = upstreamOf({ url: 'http://h' })
  const member = newMember(upstream, new HealthRegistry().of(upstream))
  const { breaker, credential } = member.health
  for (let i = 0; i < 5; i += 1) breaker.failed(0, false)
  credential.failed(0, false)
  const [first, second] = [new Visit(member, 'm', 30_000), new Visit(member, 'm', 30_000)]
  first.report({ blames: null, waitMs: null }, 30_000, true)
  second.report({ blames: null, waitMs: null }, 30_000, true)
  second.complete()
  second.end()
  credential.failed(30_000, false)
  const third = new Visit(member, 'm', 60_000)
  first.report({ blames: 'upstream', waitMs: null }, 60_000)
  t.notOk(breaker.isOpen, 'what breaks off then is one failure of five')
  t.notOk(credential.allows(60_000), 'and lets nobody else try the credential that another one tries')
  first.end()
  third.end()
})

t.test('an upstream of another name, address or account has a health of its own', async (t) => {
  const registry = new HealthRegistry()
  const before = registry.of(upstreamOf({ url: 'http://h/a' }))
  t.equal(registry.of(upstreamOf({ url: 'http://h/a', credential: 'another' })), before)
  for (const options of [{ url: 'http://g/a' }, { url: 'http://h/b' }, { url: 'http://h/a', account: 'other' }]) {
    t.not(registry.of(upstreamOf(options)), before)
  }
  t.not(registry.of(upstreamOf({ url: 'http://h/a', account: 'u' }, 'v')), before)
})

t.test('the same owner has the same registry', async (t) => {
  const owner = {}
  t.equal(healthRegistry(owner), healthRegistry(owner))
  t.not(healthRegistry(owner), healthRegistry({}))
})

t.test('a refused credential comes back within an hour', async (t) => {
  const breaker = new Breaker(refusalRules)
  let now = 0
  for (let i = 0; i < 20; i += 1) {
    breaker.failed(now, breaker.enter(now))
    t.ok(breaker.until - now <= 3_600_000)
    now = breaker.until
  }
})
