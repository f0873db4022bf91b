import fc from 'fast-check'
import { decimalText } from '../../plugins/core/money/decimal.js'
import { leaves } from '../../plugins/core/call/measures.js'
import type { LedgerRecord } from '../../plugins/state/types.js'

const text = fc.oneof(
  fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('a"b', '\\', '\\"', '","model":"', '{', '}]', ':null', '\u2028', '\ud800')
)
const tokens = Object.fromEntries(leaves.map(({ type }) => [type, fc.nat(1e9)]))
export const amount = fc.option(fc.tuple(fc.bigInt(0n, 10n ** 24n), fc.nat(20)).map(([units, places]) => decimalText({ units, places })))

/** Members in any order, names of the record's own among those within others. */
export const anyRecord = fc.record({
  id: text,
  time: fc.nat(),
  key: fc.option(text),
  group: fc.option(text),
  protocol: text,
  model: fc.option(text),
  outcome: fc.constantFrom('ok', 'client_abort'),
  ...tokens,
  charged: fc.nat(),
  late: fc.subarray(['group', 'key']),
}).chain((needed) => fc.record({
  cost: amount,
  currency: fc.constantFrom('USD', 'EUR'),
  costParts: fc.dictionary(text, amount),
  labels: fc.dictionary(fc.oneof(text, fc.constantFrom('model', 'cost', 'input')), text),
  bill: fc.dictionary(text, fc.oneof(text, fc.nat(), fc.constant(null), fc.array(fc.record({ model: text })))),
}, { requiredKeys: [] }).chain((more) => fc.shuffledSubarray(Object.entries({ ...needed, ...more }), {
  minLength: Object.keys({ ...needed, ...more }).length,
})))
  .map((entries): LedgerRecord => JSON.parse(JSON.stringify(Object.fromEntries(entries))))
