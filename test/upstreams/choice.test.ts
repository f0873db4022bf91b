import t from 'tap'
import { nothingToResume } from '../../plugins/forward/attempt-handler.js'
import { choose, type Ask } from '../../plugins/upstreams/choice.js'
import { HealthRegistry } from '../../plugins/upstreams/health.js'
import type { Member } from '../../plugins/upstreams/member.js'
import { plainResult } from '../../plugins/upstreams/plain-result.js'
import { poolOf, readPools, type Pool } from '../../plugins/upstreams/pool.js'
import { readUpstreams } from '../../plugins/upstreams/read-upstream.js'
import { affinityKeyOf } from '../../plugins/upstreams/affinity-key.js'
import { Visit } from '../../plugins/upstreams/visit.js'
import { Visits } from '../../plugins/upstreams/visits.js'
import { settledRequest } from '../metrics/requests.js'
import { requestTo, upstreamOf } from './request.js'

function poolWith (rules: ReadonlyArray<object>, options: object = {}): Pool {
  const upstreams = readUpstreams(Object.fromEntries(rules.map((_, i) => [`m${i}`, { url: `http://m${i}` }])))
  const pool = readPools(
    { p: { ...options, members: rules.map((each, i) => ({ upstream: `m${i}`, ...each })) } }, upstreams, new HealthRegistry()
  ).get('p')
  if (pool === undefined) throw new Error('none')
  return pool
}

function chosen (pool: Pool, ask: Partial<Ask> = {}): string | undefined {
  return choose(pool, { model: 'm', affinityKey: null, now: 0, tried: [], refusedBy: [], random: () => 0, ...ask })?.upstream.name
}

function memberAt (pool: Pool, at: number): Member {
  const member = pool.members[at]
  if (member === undefined) throw new Error('none')
  return member
}

function visitsIn (pool: Pool, now: () => number): Visits {
  return new Visits(pool.members, requestTo('/v1/models', { method: 'GET' }), { attempted: () => {}, now })
}

function open (member: Member, times = 1): void {
  for (let i = 0; i < 5; i += 1) member.health.breaker.failed(0, false)
  for (let i = 1; i < times; i += 1) {
    member.health.breaker.enter(0)
    member.health.breaker.failed(0, true)
  }
}

t.test('of those that are out the one that returns soonest is asked, and never none', async (t) => {
  const pool = poolWith([{}, {}, {}])
  pool.members.forEach((member, i) => open(member, 3 - i))
  t.equal(chosen(pool), 'm2')
  memberAt(pool, 2).health.account.cool('m', 90_000)
  t.equal(chosen(pool), 'm1')
  t.equal(chosen(pool, { model: 'other' }), 'm2', 'a limit is of one model')
  memberAt(pool, 1).health.credential.failed(0, false)
  t.equal(chosen(pool), 'm0')
  memberAt(pool, 0).health.modelBreaker('m').failed(100_000, false)
  t.equal(chosen(pool), 'm1')
  t.equal(chosen(pool, { refusedBy: ['m0', 'm1', 'm2'] }), undefined)
})

t.test('when all were out and one is back, the others are tried at once', async (t) => {
  const pool = poolWith([{}, {}, {}])
  for (const member of pool.members) open(member, 6)
  const visits = visitsIn(pool, () => 20)
  visits.begin(memberAt(pool, 0), 'm', 10)
  visits.end('client_error', { blames: null, waitMs: null })
  t.equal(memberAt(pool, 0).health.breaker.isOpen, false)
  for (const at of [1, 2]) t.ok(memberAt(pool, at).health.allows('m', 20))
  open(memberAt(pool, 0))
  const others = visitsIn(pool, () => 5_000)
  others.begin(memberAt(pool, 0), 'm', 5_000)
  memberAt(pool, 1).health.breaker.succeeded()
  others.end('client_error', { blames: null, waitMs: null })
})

t.test('a request that waited in a queue of ours in vain does not end a row of failures', async (t) => {
  const pool = poolWith([{}])
  const member = memberAt(pool, 0)
  const visits = visitsIn(pool, () => 0)
  for (const blames of ['upstream', 'upstream', 'upstream', 'upstream', 'nobody_asked', 'upstream'] as const) {
    t.equal(member.health.breaker.isOpen, false)
    visits.begin(member, 'm', 0)
    visits.end(blames === 'upstream' ? 'reset' : 'queue', { blames, waitMs: null })
  }
  t.equal(member.health.breaker.isOpen, true)
})

t.test('a reply that begins brings back who was out, and counts against who fails; else the clock is not asked', async (t) => {
  const pool = poolWith([{}, {}])
  const member = memberAt(pool, 0)
  let reads = 0
  const begin = (now: number, status: number): void => {
    const visits = visitsIn(pool, () => {
      reads += 1
      return now
    })
    const visit = visits.begin(member, 'm', now)
    visits.status = status
    visits.passed({})
    visit.end()
  }
  begin(0, 200)
  t.equal(reads, 0)
  for (const { health } of pool.members) for (let i = 0; i < 5; i += 1) health.breaker.failed(0, false)
  begin(5_000, 200)
  t.equal(reads, 1)
  t.equal(member.health.breaker.isOpen, false)
  t.ok(memberAt(pool, 1).health.allows('m', 5_000), 'the other one is tried at once')
  begin(6_000, 500)
  t.equal(reads, 2)
  t.equal(member.health.breaker.isOpen, true, 'one more failure in the row that its first reply did not end')
})

t.test('lower tiers first, those that were asked last, and none beyond its concurrency', async (t) => {
  const pool = poolWith([{ tier: 2 }, { concurrency: 1 }])
  t.equal(chosen(pool), 'm1')
  memberAt(pool, 0).load.begin(0)
  t.equal(chosen(pool), 'm0')
  const [first, second] = [memberAt(pool, 0), memberAt(pool, 1)]
  second.load.begin(0)
  open(first)
  t.equal(chosen(pool, { tried: [second] }), 'm0', 'a first time to one that is out, where no other is well')
  const well = poolWith([{}, {}])
  open(memberAt(well, 1))
  t.equal(chosen(well, { tried: [memberAt(well, 0)] }), 'm0', 'a second time to one that is well, before a first time to one that is out')
})

t.test('a first attempt goes to the less busy of two, whoever answered last', async (t) => {
  const pool = poolWith([{}, {}])
  new Visit(memberAt(pool, 0), 'm', 0).end()
  memberAt(pool, 1).load.begin(0)
  memberAt(pool, 1).load.answered()
  t.equal(chosen(pool), 'm0')
  const tiers = poolWith([{ tier: 2 }, {}])
  memberAt(tiers, 0).load.begin(0)
  t.equal(chosen(tiers), 'm1', 'of the lowest tier')
  const three = poolWith([{ tier: 2 }, {}, {}])
  memberAt(three, 0).load.begin(0)
  t.equal(chosen(three), 'm2')
})

t.test('a retry comes again only to one that is well and has room, and to no account that said when to come again', async (t) => {
  const pool = poolWith([{}, { concurrency: 1 }])
  const [out, full] = [memberAt(pool, 0), memberAt(pool, 1)]
  open(out)
  t.equal(chosen(pool, { tried: [out, full] }), 'm1', 'no second time to one that is out')
  full.load.begin(0)
  t.equal(chosen(pool, { tried: [out, full] }), undefined, 'nor to one that is full')
  full.load.end()
  t.equal(chosen(pool, { tried: [out, full], refusedBy: [full.health.account.name] }), undefined, 'nor to one that refused')
  full.health.account.cool('m', 90_000)
  t.equal(chosen(pool, { tried: [out] }), undefined)
  t.equal(chosen(pool, { tried: [out], model: 'other' }), 'm1')
  out.health.account.cool('m', 95_000)
  t.equal(chosen(pool), 'm1', 'the first attempt asks somebody all the same')
})

t.test('a retry goes to who answered last: one that hangs has as little to do as one that is well', async (t) => {
  const pool = poolWith([{}, {}, { weight: 4 }, {}])
  const tried = [memberAt(pool, 0)]
  t.equal(chosen(pool, { tried }), 'm1', 'by chance, where nothing is known')
  t.equal(chosen(pool, { tried, random: () => 0.99 }), 'm3')
  const [hung, well, idle] = [memberAt(pool, 1), memberAt(pool, 2), memberAt(pool, 3)]
  idle.load.begin(0)
  new Visit(hung, 'm', 0).end()
  for (let i = 0; i < 9; i += 1) {
    const visit = new Visit(well, 'm', 0)
    visit.report({ blames: i < 6 ? null : 'upstream', waitMs: null }, 0)
    if (i > 6) visit.end()
  }
  t.equal(chosen(pool, { tried }), 'm2', 'three of a weight of four are less than one of one')
  t.equal(chosen(pool, { tried: [...tried, well] }), 'm1')
  t.equal(chosen(pool, { tried: [...tried, well], random: () => 0.9 }), 'm1', 'of equals the less busy one')
})

t.test('what keeps to a member', async (t) => {
  const llm = requestTo('/v1/responses', { body: '{}' })
  const headers = { 'session-id': 'one' }
  t.equal(affinityKeyOf(poolWith([{}, {}], { affinity: 'none' }), llm, headers), null)
  t.equal(affinityKeyOf(poolWith([{}]), llm, headers), null)
  t.match(affinityKeyOf(poolWith([{}, {}]), llm, headers), { stays: true })
  t.match(affinityKeyOf(poolWith([{}, {}], { affinity: 'key' }), llm, headers), { stays: false })
  const other = requestTo('/v1/responses', { body: '{}', key: 'other' })
  const pool = poolWith([{}, {}])
  t.not(affinityKeyOf(pool, llm, headers)?.hash, affinityKeyOf(pool, other, headers)?.hash, 'two callers with the same words are two')
  other.auth.key = null
  t.match(affinityKeyOf(pool, other, {}), { stays: false })
})

t.test('all that may have something: those of the group\'s own upstream before the others', async (t) => {
  const [a, b] = [upstreamOf({ url: 'http://a' }, 'a'), upstreamOf({ url: 'http://b' }, 'b')]
  t.match(poolOf([b], [a, b], new HealthRegistry()).members, [{ upstream: { name: 'b' }, tier: 1 }, { upstream: { name: 'a' }, tier: 2 }])
  nothingToResume()
})

t.test('how a single attempt ended', async (t) => {
  const cases: ReadonlyArray<readonly [fields: Parameters<typeof settledRequest>[0], result: string, forwards?: boolean]> = [
    [{}, 'ok'],
    [{ upstreamReply: { status: 404 } }, 'client_error'],
    [{ upstreamReply: { status: 429 } }, 'rate_limited'],
    [{ upstreamReply: { status: 503 } }, 'overloaded'],
    [{ upstreamReply: { status: 529 } }, 'overloaded'],
    [{ upstreamReply: { status: 500 } }, 'server_error'],
    [{ upstreamReply: { status: 401 } }, 'credential'],
    [{ upstreamReply: { status: 401 } }, 'client_error', true],
    [{ abortedBy: 'client' }, 'left'],
    [{ abortedBy: 'upstream' }, 'reset'],
    [{ abortedBy: 'upstream', errorCode: 'upstream_timeout' }, 'timeout'],
    [{ upstreamReply: { status: 0 }, errorCode: 'upstream_unreachable' }, 'connect'],
    [{ upstreamReply: { status: 0 }, errorCode: 'overloaded' }, 'queue'],
    [{ upstreamReply: { status: 0 }, errorCode: 'upstream_invalid' }, 'invalid'],
    [{ upstreamReply: { status: 0 }, errorCode: 'upstream_reset' }, 'reset'],
  ]
  for (const [fields, result, forwards = false] of cases) {
    const llm = settledRequest(fields)
    llm.routing.forwardsSecret = forwards
    t.equal(plainResult(llm), result, JSON.stringify(fields))
  }
})
