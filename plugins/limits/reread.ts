import type { Balances } from '../core/balances/types.js'
import type { ConfiguredParties } from '../core/money/budget-status.js'
import type { Group } from '../core/types.js'
import { currentBuckets } from './budgets.js'
import type { Remaining } from './remaining.js'

/** Groups that are read in one round: each is a question to the store. */
const maxGroups = 50
/** Groups that are shown before a request asked for them. Each is a line of every scrape, and configurations may have very many. */
const maxUnasked = 100

/**
 * Reads at intervals what is left of the balances and budgets of groups. Other processes spend of them, too: without this, the gauges of
 * a process without requests would be outdated, and those of one that has just started would be missing.
 */
export class Reread {
  readonly #balances: Balances
  readonly #remaining: Remaining
  readonly #parties: () => ConfiguredParties
  readonly #currency: () => string
  /** Index of the next group. */
  #next = 0

  constructor (balances: Balances, remaining: Remaining, parties: () => ConfiguredParties, currency: () => string) {
    this.#balances = balances
    this.#remaining = remaining
    this.#parties = parties
    this.#currency = currency
  }

  /** Reads the next groups. A store that cannot answer is reported by requests, not here. */
  async some (): Promise<void> {
    const groups = this.#parties().groups
      .filter(({ limits }) => limits.balance !== undefined || limits.budgets !== undefined)
      .filter(({ id }, at) => at < maxUnasked || this.#remaining.tells(id))
    const from = this.#next < groups.length ? this.#next : 0
    this.#next = from + maxGroups
    await Promise.allSettled(groups.slice(from, from + maxGroups).map(async (group) => await this.#read(group)))
  }

  async #read ({ id, limits }: Group): Promise<void> {
    if (limits.balance !== undefined) {
      const { spent, held } = await this.#balances.read(id)
      this.#remaining.noteGroup(id, limits.balance, limits.balance - spent - held)
    }
    for (const bucket of currentBuckets(limits, this.#currency(), Date.now()) ?? []) {
      const { spent, held } = await this.#balances.readBucket(bucket.id, id)
      this.#remaining.budgets.set(id, bucket, bucket.amount - spent - held)
    }
  }
}
