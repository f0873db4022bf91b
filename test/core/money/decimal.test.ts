import fc from 'fast-check'
import t from 'tap'
import {
  add, billionthsOf, decimalText, isLess, numberOf, readDecimal, shifted, times, timesCount, type Decimal,
} from '../../../plugins/core/money/decimal.js'

const edge = BigInt(Number.MAX_SAFE_INTEGER)

/** Small ones, those around the largest exact number, and some far beyond it. */
const units = fc.oneof(fc.bigInt(0n, 100_000n), fc.bigInt(edge - 5n, edge + 5n), fc.bigInt(0n, 10n ** 40n), fc.bigInt(-(10n ** 20n), 0n))
const decimals = fc.record({ units, places: fc.integer({ min: 0, max: 24 }) })
type Plain = Readonly<{ units: bigint, places: number }>

function made ({ units, places }: Plain): Decimal {
  return shifted(readDecimal(String(units)) ?? { units: NaN, places: 0 }, places)
}

/** As bigints of so many places alone. */
function at ({ units, places }: { readonly units: number | bigint, readonly places: number }, all: number): bigint {
  return BigInt(units) * 10n ** BigInt(all - places)
}

t.test('sums, products and order are those of whole numbers without a bound', async () => {
  fc.assert(fc.property(decimals, decimals, (left, right) => {
    const [a, b] = [made(left), made(right)]
    return at(add(a, b), 48) === at(left, 48) + at(right, 48) &&
      at(times(a, b), 96) === at(left, 48) * at(right, 48) &&
      isLess(a, b) === (at(left, 48) < at(right, 48))
  }), {
    numRuns: 2_000,
    examples: [[{ units: edge, places: 0 }, { units: 1n, places: 0 }], [{ units: edge, places: 3 }, { units: 3n, places: 9 }]],
  })
  fc.assert(fc.property(decimals, fc.maxSafeNat(), (left, count) => at(timesCount(made(left), count), 24) === at(left, 24) * BigInt(count)))
})

t.test('what is a safe integer is a number, and nothing else is one', async () => {
  fc.assert(fc.property(decimals, decimals, (left, right) => [add, times].every((operation) => {
    const { units: found } = operation(made(left), made(right))
    return typeof found === 'number' ? Number.isSafeInteger(found) : found > edge || found < -edge
  })), { numRuns: 2_000, examples: [[{ units: 10n ** 30n, places: 0 }, { units: -(10n ** 30n) + 1n, places: 0 }]] })
})

t.test('billionths are rounded up, the nearest number is that of the text', async () => {
  fc.assert(fc.property(decimals.filter(({ units }) => units >= 0n), (given) => {
    const part = 10n ** 15n
    return billionthsOf(made(given)) === Number((at(given, 24) + part - 1n) / part) &&
      numberOf(made(given)) === Number(decimalText(made(given)))
  }), {
    numRuns: 2_000,
    examples: [
      [{ units: edge, places: 10 }], [{ units: edge, places: 24 }], [{ units: edge + 2n, places: 10 }], [{ units: 10n ** 17n, places: 20 }],
    ],
  })
})

t.test('a text that was written is read as the same number', async () => {
  fc.assert(fc.property(decimals, (given) => {
    const text = decimalText(made(given))
    const again = readDecimal(text)
    return again !== null && at(again, 24) === at(given, 24) && !/e|\.$|\.\d*0$/.test(text)
  }), { numRuns: 2_000, examples: [[{ units: -5n, places: 1 }], [{ units: -5n, places: 0 }], [{ units: 0n, places: 9 }]] })
})
