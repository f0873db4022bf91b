/** Decimal numbers that are never rounded: prices, factors and sums of both. */

/** `units` times 10 to the power of -`places`. */
export interface Decimal {
  readonly units: bigint
  readonly places: number
}

export const zero: Decimal = { units: 0n, places: 0 }
export const one: Decimal = { units: 1n, places: 0 }

const billionthPlaces = 9
const form = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,3}))?$/
const powers: bigint[] = [1n]

function tenTo (exponent: number): bigint {
  const known = powers[exponent]
  if (known !== undefined) return known
  const power = 10n * tenTo(exponent - 1)
  powers[exponent] = power
  return power
}

/** `1.25`, `-3`, `2.5e-06`. Null for what is no such number. */
export function readDecimal (text: string): Decimal | null {
  const found = form.exec(text)
  if (found === null) return null
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = found
  const units = BigInt(`${sign}${whole}${fraction}`)
  const places = fraction.length - Number(exponent)
  return places < 0 ? { units: units * tenTo(-places), places: 0 } : { units, places }
}

/** As people write it: no exponent, no zeros at the end. */
export function decimalText ({ units, places }: Decimal): string {
  // What one request costs is nearly always so small, and a bigint takes four times as long.
  const value = Number(units)
  return value >= 0 && value <= Number.MAX_SAFE_INTEGER ? smallText(value, places) : largeText(units, places)
}

function smallText (value: number, places: number): string {
  let whole = value
  let fraction = places
  for (; fraction > 0 && whole % 10 === 0; fraction -= 1) whole /= 10
  const digits = String(whole)
  if (fraction === 0) return digits
  const point = digits.length - fraction
  return point > 0 ? `${digits.slice(0, point)}.${digits.slice(point)}` : `0.${digits.padStart(fraction, '0')}`
}

function largeText (units: bigint, places: number): string {
  const digits = (units < 0n ? -units : units).toString()
  const sign = units < 0n ? '-' : ''
  if (places === 0) return sign + digits
  const padded = digits.length > places ? digits : digits.padStart(places + 1, '0')
  let end = padded.length
  while (end > padded.length - places && padded.charCodeAt(end - 1) === 48) end -= 1
  const whole = padded.slice(0, padded.length - places)
  return end === padded.length - places ? sign + whole : `${sign}${whole}.${padded.slice(padded.length - places, end)}`
}

export function add (a: Decimal, b: Decimal): Decimal {
  if (a.places === b.places) return { units: a.units + b.units, places: a.places }
  if (a.places < b.places) return { units: a.units * tenTo(b.places - a.places) + b.units, places: b.places }
  return { units: a.units + b.units * tenTo(a.places - b.places), places: a.places }
}

export function times (a: Decimal, b: Decimal): Decimal {
  if (b === one) return a
  return { units: a.units * b.units, places: a.places + b.places }
}

/** Moves the point to the left: `shifted(price, 6)` of a price for a million is that of one. */
export function shifted ({ units, places }: Decimal, by: number): Decimal {
  return { units, places: places + by }
}

export function isLess (a: Decimal, b: Decimal): boolean {
  return a.units * tenTo(b.places) < b.units * tenTo(a.places)
}

/** In whole billionths, rounded up. */
export function billionthsOf ({ units, places }: Decimal): number {
  if (places <= billionthPlaces) return Number(units * tenTo(billionthPlaces - places))
  const part = tenTo(places - billionthPlaces)
  return Number((units + part - 1n) / part)
}
