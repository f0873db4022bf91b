import { isIP } from 'node:net'
import { LRUCache } from 'lru-cache'

/** How many wrong keys one address may send. */
export interface FailureOptions {
  /** Wrong keys per minute from one address (IPv6: one /64); after a pause, as many at once. */
  perMinute: number
  /**
   * Addresses that are remembered, the most recent ones.
   * @defaultValue 10,000
   */
  maxAddresses?: number
}

/** Who sent a key. */
export interface Asker {
  /** See `networkOf`. */
  readonly network: string
  readonly digest: string
}

interface Budget {
  /** Below zero after wrong keys that were looked up at the same time, so that the rate still holds. */
  left: number
  at: number
}

/**
 * Slows down guessing of keys, in constant memory. After too many wrong keys, further keys of the address are refused for a while
 * without a look-up, so it does not learn whether a guess is right. Keys that were right from this address before
 * are still let through, so that nobody behind a shared address is locked out by somebody else's guesses.
 */
export class FailureBudget {
  readonly #perMinute: number
  readonly #budgets: LRUCache<string, Budget>
  /** Pairs of network and key that were right. Only right keys get in, so that no flood evicts others. */
  readonly #right: LRUCache<string, true>

  constructor ({ perMinute, maxAddresses = 10_000 }: FailureOptions) {
    this.#perMinute = perMinute
    this.#budgets = new LRUCache({ max: maxAddresses })
    this.#right = new LRUCache({ max: maxAddresses })
  }

  /** Milliseconds until the key may be looked up; null for now. */
  waitMs (asker: Asker, now: number): number | null {
    const budget = this.#budgets.get(asker.network)
    if (budget === undefined || this.#right.has(pairOf(asker))) return null
    budget.left = Math.min(this.#perMinute, budget.left + (now - budget.at) * this.#perMinute / 60_000)
    budget.at = now
    return budget.left >= 1 ? null : Math.ceil((1 - budget.left) * 60_000 / this.#perMinute)
  }

  /** A key that was right before loses its exemption: it would go on charging the budget of all others there. */
  wrong (asker: Asker, now: number): void {
    this.#right.delete(pairOf(asker))
    const budget = this.#budgets.get(asker.network)
    if (budget === undefined) this.#budgets.set(asker.network, { left: this.#perMinute - 1, at: now })
    else budget.left -= 1
  }

  right (asker: Asker): void {
    this.#right.set(pairOf(asker), true)
  }
}

function pairOf ({ network, digest }: Asker): string {
  return `${network} ${digest}`
}

const portBehind = /^(?:([\d.]+):\d+|\[([\da-f:.]+)\](?::\d+)?)$/i

/**
 * The smallest network that belongs to one caller: an IPv4 address, also one mapped into IPv6, or the /64 of an IPv6 address. A port that
 * some proxies append is ignored. Everything that is no address counts as one caller, `unknown`.
 */
export function networkOf (written: string): string {
  const address = written.replace(portBehind, '$1$2')
  const version = isIP(address)
  if (version !== 6) return version === 4 ? address : 'unknown'
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)
  if (mapped?.[1] !== undefined) return mapped[1]
  const [head = '', tail = ''] = address.replace(/%.*/, '').split('::')
  const first = groupsOf(head)
  const last = groupsOf(tail)
  const zeros = Array<string>(8 - first.length - last.length).fill('0')
  return `${[...first, ...zeros, ...last].slice(0, 4).map((group) => parseInt(group, 16).toString(16)).join(':')}::/64`
}

function groupsOf (text: string): string[] {
  return text === '' ? [] : text.split(':')
}
