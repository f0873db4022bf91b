import { add, readDecimal, zero, type Decimal } from '../../plugins/core/money/decimal.js'

/** With so many digits a number is exact, and so are sums of thousands of them. */
const maxPlaces = 12
const most = Number.MAX_SAFE_INTEGER - 1e12

/** A sum of decimal texts, exact however many they are. Those below one, nearly all, are collected as whole numbers. */
export class Money {
  #sum: Decimal = zero
  /** By the number of places. */
  readonly #gathered = new Array<number>(maxPlaces + 1).fill(0)

  add (text: string): void {
    const places = text.length - 2
    const units = plainUnits(text, places)
    if (units < 0) {
      this.#sum = add(this.#sum, readDecimal(text) ?? zero)
      return
    }
    const gathered = Number(this.#gathered[places]) + units
    this.#gathered[places] = gathered
    if (gathered > most) this.#spill(places, gathered)
  }

  plus (other: Decimal): void {
    this.#sum = add(this.#sum, other)
  }

  get total (): Decimal {
    this.#gathered.forEach((units, places) => { if (units > 0) this.#spill(places, units) })
    return this.#sum
  }

  #spill (places: number, units: number): void {
    this.#sum = add(this.#sum, { units, places })
    this.#gathered[places] = 0
  }
}

/** The digits of `0.123` as a number; negative for any other form. */
function plainUnits (text: string, places: number): number {
  if (places < 1 || places > maxPlaces || !text.startsWith('0.')) return -1
  let units = 0
  for (let at = 2; at < text.length; at += 1) {
    const digit = text.charCodeAt(at) - 48
    if (digit < 0 || digit > 9) return -1
    units = units * 10 + digit
  }
  return units
}
