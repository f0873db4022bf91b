import { add, readDecimal, zero, type Decimal } from '../../plugins/core/decimal.js'

/** So many digits are a number that is exact, and so are sums of thousands of them. */
const plain = /^0\.(\d{1,12})$/
const most = Number.MAX_SAFE_INTEGER - 1e12

/** A sum of decimal texts, exact however many they are. Those below one, nearly all, are gathered as whole numbers. */
export class Money {
  #sum: Decimal = zero
  /** By the number of places. */
  readonly #gathered = new Array<number>(13).fill(0)

  add (text: string): void {
    const places = text.length - 2
    if (places > 12 || !plain.test(text)) {
      this.#sum = add(this.#sum, readDecimal(text) ?? zero)
      return
    }
    const gathered = Number(this.#gathered[places]) + Number(text.slice(2))
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
    this.#sum = add(this.#sum, { units: BigInt(units), places })
    this.#gathered[places] = 0
  }
}
