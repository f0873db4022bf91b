import type { Balances } from '../core/balances/types.js'
import type { ConfiguredParties } from '../core/money/budget-status.js'
import type { Group } from '../core/types.js'
import { currentBuckets } from './budgets.js'
import type { Remaining } from './remaining.js'

/** Groups that are read at once: each is a question to the store. */
const maxGroups = 50
/** Groups that are told before this process was asked for them. Each is a line of every scrape, and configurations may have very many. */
const maxUnasked = 100

/**
 * Reads now and then what is left of the balances and budgets of groups: other processes spend of them, too, and one that is asked for
 * nothing, or was started a moment ago, would tell what is long over, or nothing.
 */
export class Reread {
  readonly #balances: Balances
  readonly #remaining: Remaining
  readonly #parties: () => ConfiguredParties
  readonly #currency: () => string
  /** Which group is the next. */
  #next = 0

  constructor (balances: Balances, remaining: Remaining, parties: () => ConfiguredParties, currency: () => string) {
    this.#balances = balances
    this.#remaining = remaining
    this.#parties = parties
    this.#currency = currency
  }

  /** The next of the first groups, and of those that are told already. A store that cannot answer is heard of from requests. */
  async some (now = Date.now()): Promise<void> {
    const groups = this.#parties().groups
      .filter(({ limits }) => limits.balance !== undefined || limits.budgets !== undefined)
      .filter(({ id }, at) => at < maxUnasked || this.#remaining.tells(id))
    const from = this.#next < groups.length ? this.#next : 0
    this.#next = from + maxGroups
    await Promise.allSettled(groups.slice(from, from + maxGroups).map(async (group) => await this.#read(group, now)))
  }

  async #read ({ id, limits }: Group, now: number): Promise<void> {
    if (limits.balance !== undefined) {
      const { spent, held } = await this.#balances.read(id)
      this.#remaining.noteGroup(id, limits.balance, limits.balance - spent - held)
    }
    for (const bucket of currentBuckets(limits, this.#currency(), now) ?? []) {
      const { spent, held } = await this.#balances.readBucket(bucket.id, id)
      this.#remaining.budgets.set(id, bucket, bucket.amount - spent - held)
    }
  }
}
