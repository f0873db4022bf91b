/** Decimal numbers that are never rounded: prices, factors and sums of both. */

/** `units` times 10 to the power of -`places`. */
export interface Decimal {
  readonly units: Units
  readonly places: number
}

/** A number whenever that is exact: nearly all are small, and a bigint takes several times as long. */
type Units = number | bigint

export const zero: Decimal = { units: 0, places: 0 }
export const one: Decimal = { units: 1, places: 0 }

export const billionthPlaces = 9
const form = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,3}))?$/
const powers: Units[] = [1]

function tenTo (exponent: number): Units {
  const known = powers[exponent]
  if (known !== undefined) return known
  const power = product(10, tenTo(exponent - 1))
  powers[exponent] = power
  return power
}

function exact (units: bigint): Units {
  const value = Number(units)
  return Number.isSafeInteger(value) ? value : units
}

/** A product that was rounded is never a safe integer, so the check finds it. */
function product (a: Units, b: Units): Units {
  if (typeof a === 'number' && typeof b === 'number') {
    const value = a * b
    if (Number.isSafeInteger(value)) return value
  }
  return exact(BigInt(a) * BigInt(b))
}

function sum (a: Units, b: Units): Units {
  if (typeof a === 'number' && typeof b === 'number') {
    const value = a + b
    if (Number.isSafeInteger(value)) return value
  }
  return exact(BigInt(a) + BigInt(b))
}

/** Reads `1.25`, `-3`, `2.5e-06`. Null for any other text. */
export function readDecimal (text: string): Decimal | null {
  const found = form.exec(text)
  if (found === null) return null
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = found
  const units = exact(BigInt(`${sign}${whole}${fraction}`))
  const places = fraction.length - Number(exponent)
  return places < 0 ? { units: product(units, tenTo(-places)), places: 0 } : { units, places }
}

/** In the usual notation: no exponent, no zeros at the end. */
export function decimalText ({ units, places }: Decimal): string {
  return typeof units === 'number' && units >= 0 ? smallText(units, places) : largeText(BigInt(units), places)
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
  if (a.places === b.places) return { units: sum(a.units, b.units), places: a.places }
  if (a.places < b.places) return add(b, a)
  return { units: sum(a.units, product(b.units, tenTo(a.places - b.places))), places: a.places }
}

export function times (a: Decimal, b: Decimal): Decimal {
  if (b === one) return a
  return { units: product(a.units, b.units), places: a.places + b.places }
}

/** `count` is a safe integer. */
export function timesCount ({ units, places }: Decimal, count: number): Decimal {
  return { units: product(units, count), places }
}

/** Moves the decimal point to the left: `shifted(price, 6)` of a price per million is the price of one. */
export function shifted ({ units, places }: Decimal, by: number): Decimal {
  return { units, places: places + by }
}

/** Its units with `more` places, which are at least its own. */
export function unitsIn ({ units, places }: Decimal, more: number): Units {
  return product(units, tenTo(more - places))
}

/** Of two numbers as they were read. */
export function isSame (a: Decimal, b: Decimal | undefined): boolean {
  return a.units === b?.units && a.places === b.places
}

export function isLess (a: Decimal, b: Decimal): boolean {
  return product(a.units, tenTo(b.places)) < product(b.units, tenTo(a.places))
}

/** In whole billionths, rounded up. Not for negative numbers. */
export function billionthsOf ({ units, places }: Decimal): number {
  if (places <= billionthPlaces) return Number(product(units, tenTo(billionthPlaces - places)))
  const part = tenTo(places - billionthPlaces)
  if (typeof units === 'number' && typeof part === 'number') {
    // Division may have rounded the quotient up to the next whole number, but never below the previous one.
    const whole = Math.floor(units / part)
    return whole * part < units ? whole + 1 : whole
  }
  return Number((BigInt(units) + BigInt(part) - 1n) / BigInt(part))
}

/** The nearest number. */
export function numberOf ({ units, places }: Decimal): number {
  const power = tenTo(places)
  // Both are exact, so the division rounds only once.
  return typeof units === 'number' && typeof power === 'number' ? units / power : Number(decimalText({ units, places }))
}
