/**
 * Any schedule of failures, delays and callers that leave, over real sockets: at most one reply, of one member; nothing is sent
 * again once a byte was passed; each attempt counts once; limits are held and settled once; tokens are those of who answered.
 */
import fc from 'fast-check'
import t from 'tap'
import { runs } from '../helpers/runs.js'
import type { Step } from './schedule/far-side.js'
import { play } from './schedule/play.js'
import type { CallerPlan, MemberPlan, Schedule } from './schedule/world.js'

const times = { delayMs: fc.constantFrom(0, 0, 5, 40, 120), betweenMs: fc.constantFrom(0, 0, 1, 15) }
const part = fc.oneof(fc.constant('nothing' as const), fc.double({ min: 0, max: 1, noNaN: true }))
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ ...times, does: fc.constantFrom('answers' as const, 'fails_first' as const, 'is_odd' as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      ...times,
      does: fc.constant('refuses' as const),
      status: fc.constantFrom(400, 401, 402, 403, 404, 413, 429, 500, 502, 503, 503, 504, 529),
      long: fc.nat(9).map((n) => n === 0),
    }),
  },
  { weight: 3, arbitrary: fc.record({ ...times, does: fc.constantFrom('cuts' as const, 'stalls' as const), part }) }
)

const member: fc.Arbitrary<MemberPlan> = fc.record({
  dead: fc.nat(4).map((n) => n === 0),
  renews: fc.boolean(),
  account: fc.constantFrom('a', 'b', 'c', 'd'),
  tier: fc.constantFrom(1, 1, 1, 2),
  weight: fc.constantFrom(1, 1, 3),
  concurrency: fc.constantFrom(1, 2, 100),
})

const caller: fc.Arbitrary<CallerPlan> = fc.record({
  protocol: fc.constantFrom('chat' as const, 'messages' as const, 'responses' as const),
  stream: fc.boolean(),
  model: fc.constantFrom('m', 'n'),
  startMs: fc.nat(60),
  leaves: fc.oneof(
    { weight: 3, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: fc.record({ afterMs: fc.nat(250) }) },
    { weight: 1, arbitrary: fc.record({ afterBytes: fc.nat(1_200) }) }
  ),
  steps: fc.array(step, { maxLength: 5 }),
})

const schedule: fc.Arbitrary<Schedule> = fc.record({
  mounted: fc.boolean(),
  drainMs: fc.constantFrom(0, 50, 5_000),
  attempts: fc.integer({ min: 1, max: 4 }),
  retryOn: fc.subarray(['connect', 'reset', 'timeout', 'first_event', '429', '500', '502', '503', '504', '529'] as const, { minLength: 3 })
    .map((causes) => [...causes]),
  affinity: fc.constantFrom('conversation' as const, 'key' as const, 'none' as const),
  members: fc.array(member, { minLength: 1, maxLength: 4 }),
  callers: fc.array(caller, { minLength: 1, maxLength: 24 }),
})

t.test('whatever fails and whoever leaves, one reply of one member, all counted once', async () => {
  await fc.assert(fc.asyncProperty(schedule, async (each) => {
    const broken = await play(each)
    if (broken.length > 0) throw new Error(broken.join('\n'))
    // What depends on time does not shrink.
  }), { numRuns: runs(8), endOnFailure: true })
})
