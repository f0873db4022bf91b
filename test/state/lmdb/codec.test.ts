import fc from 'fast-check'
import t from 'tap'
import type { HoldRecord } from '../../../plugins/core/balances/group-store.js'
import { newWindow } from '../../../plugins/core/balances/window.js'
import {
  readAccount, readBucketRecord, readHold, readNumbers, writeAccount, writeBucket, writeHold, writeQuiet,
} from '../../../plugins/state/lmdb/codec.js'

const plain = { noNullPrototype: true }
const count = fc.integer({ min: -(2 ** 53), max: 2 ** 53 })
const name = fc.string({ unit: 'grapheme', maxLength: 40 })
const entries = fc.array(fc.record({ second: count, requests: fc.nat(), tokens: fc.nat() }, plain), { maxLength: 60 })
const scope = fc.constantFrom('key' as const, 'group' as const)

/** What is written is valid until the next is. */
const kept = (bytes: Buffer): Buffer => Buffer.from(bytes)

t.test('an account is read as it was written, each number in its place', async (t) => {
  fc.assert(fc.property(count, count, count, entries, (spent, held, active, list) => {
    const requests = list.reduce((sum, entry) => sum + entry.requests, 0)
    const tokens = list.reduce((sum, entry) => sum + entry.tokens, 0)
    const account = { spent, held, active, window: Object.assign(newWindow(), { entries: list, requests, tokens }) }
    t.strictSame(readAccount(kept(writeAccount(account))), account)
  }), { numRuns: 50 })
})

t.test('a bucket is read as it was written', async (t) => {
  const bucket = fc.record({
    spent: count,
    held: count,
    amount: count,
    toldPercent: count,
    otherAmount: count,
    otherToldPercent: count,
    endsAt: fc.option(count),
  }, plain)
  fc.assert(fc.property(bucket, (given) => { t.strictSame(readBucketRecord(kept(writeBucket(given))), given) }), { numRuns: 50 })
})

t.test('a hold is read as it was written, with all that its flags say', async (t) => {
  const hold: fc.Arbitrary<HoldRecord> = fc.record({
    id: name,
    group: name,
    key: name,
    scopes: fc.subarray(['key', 'group'] as const),
    balances: fc.subarray(['key', 'group'] as const),
    buckets: fc.array(fc.record({ scope, id: name, unit: fc.constantFrom('tokens' as const, 'cost' as const) }, plain), { maxLength: 5 }),
    tokens: count,
    cost: count,
    floor: count,
    costFloor: count,
    active: fc.constantFrom(0 as const, 1 as const),
    second: count,
    deadline: count,
    state: fc.constantFrom('open' as const, 'closed' as const),
  }, plain)
  fc.assert(fc.property(hold, fc.boolean(), (given, settled) => {
    const balances = given.balances.filter((each) => given.scopes.includes(each))
    const whole = { ...given, balances, ...settled && { settled: true as const } }
    t.strictSame(readHold(kept(writeHold(whole)), whole.group, whole.id, whole.state), whole)
  }), { numRuns: 100 })
})

t.test('when the holds of a group are due is read as it was written', async (t) => {
  for (const [open, closed] of [[5, Infinity], [Infinity, 6], [7, 8]] as const) {
    t.strictSame(readNumbers(kept(writeQuiet(open, closed)), 0, 2), [open, closed])
  }
})

function holdOf (given: Partial<HoldRecord>): HoldRecord {
  const counts = { tokens: 9, cost: 0, floor: 3, costFloor: 0, active: 1, second: 1, deadline: 2 } as const
  return { id: 'a', group: 'chat', key: 'ci', scopes: ['key', 'group'], balances: [], buckets: [], ...counts, state: 'open', ...given }
}

t.test('a hold keeps which of its parties have a balance; one of an older version is charged to each that it counts for', async (t) => {
  const read = (bytes: Buffer): HoldRecord => readHold(bytes, 'chat', 'a', 'open')
  for (const balances of [[], ['key'], ['group'], ['key', 'group']] as const) {
    t.strictSame(read(kept(writeHold(holdOf({ balances })))), holdOf({ balances }))
  }
  const older = kept(writeHold(holdOf({})))
  older[0] = Number(older[0]) & 0b1111
  t.strictSame(read(older), holdOf({ balances: ['key', 'group'] }))
})
