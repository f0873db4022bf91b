/** The state of the budgets, for those who look at it: of the configuration, and of issued keys. */
import { setImmediate as otherWork } from 'node:timers/promises'
import type { Balances, Bucket } from '../core/balances/types.js'
import type { Gateway } from '../core/gateway.js'
import { billionthsPerUnit } from '../core/money/budget.js'
import { nearestFirst, type BudgetsStatus, type BudgetStatus, type ConfiguredParties } from '../core/money/budget-status.js'
import type { Key, Limits } from '../core/types.js'
import { currentBuckets, readBucketId } from './budgets.js'

/** Configured budgets beyond these are read as rarely as those of issued keys: each is a question to the store. */
const maxConfigured = 100
const maxShown = 100
/** If there are more keys or budgets than this, some are skipped. */
const [maxKeys, maxAsked] = [10_000, 1_000]
/** Keys that are read, or budgets that are asked for at once, before other work gets its turn. */
const batch = 50
/** Shared by everybody who looks: reading is much work for a store with many keys. */
const keepMs = 10_000

/** The state of the budgets: of the configuration, groups first, and of issued keys. Rejects if a store cannot answer. */
export async function readBudgets (
  balances: Balances, { groups, keys }: ConfiguredParties, issued: IssuedBudgets, currency: string
): Promise<BudgetsStatus> {
  const now = Date.now()
  const asked = [
    ...groups.map(({ id, limits }) => ({ group: id, key: null, limits })),
    ...keys.map(({ id, group, limits }) => ({ group, key: id, limits })),
  ].flatMap((party) => askedOf(party, currency, now))
  const configured = await Promise.all(asked.slice(0, maxConfigured).map(async (each) => await readOne(balances, each, currency)))
  const { budgets, ...rest } = await issued.read(currency, now, asked.slice(maxConfigured))
  return { budgets: [...configured, ...budgets], ...rest }
}

/** The state of the budgets of issued keys, and of others that may be very many: those nearest to their limits. */
export class IssuedBudgets {
  readonly #balances: Balances
  readonly #gateway: Pick<Gateway, 'issuedKeys'>
  #status: Promise<BudgetsStatus> | null = null
  #readAt = -Infinity

  constructor (balances: Balances, gateway: Pick<Gateway, 'issuedKeys'>) {
    this.#balances = balances
    this.#gateway = gateway
  }

  /** Rejects if a store cannot answer. */
  async read (currency: string, now: number, others: readonly Asked[] = []): Promise<BudgetsStatus> {
    if (this.#status === null || Math.abs(now - this.#readAt) >= keepMs) {
      this.#readAt = now
      this.#status = this.#readAll(currency, now, others).catch((error: unknown) => {
        this.#readAt = -Infinity
        throw error
      })
    }
    return await this.#status
  }

  async #readAll (currency: string, now: number, others: readonly Asked[]): Promise<BudgetsStatus> {
    const { asked, isCut } = await find(others, this.#gateway.issuedKeys?.() ?? [], currency, now)
    const budgets: BudgetStatus[] = []
    for (let at = 0; at < asked.length; at += batch) {
      const some = asked.slice(at, at + batch)
      budgets.push(...await Promise.all(some.map(async (each) => await readOne(this.#balances, each, currency))))
    }
    return { budgets: nearestFirst(budgets).slice(0, maxShown), more: Math.max(0, budgets.length - maxShown), isCut }
  }
}

/** The others, and the budgets of keys that can spend. */
async function find (
  others: readonly Asked[], keys: AsyncIterable<Key> | readonly Key[], currency: string, now: number
): Promise<{ readonly asked: readonly Asked[], readonly isCut: boolean }> {
  const asked = others.slice(0, maxAsked)
  let count = 0
  for await (const { id, group, limits, disabled, expiresAt } of keys) {
    if (count >= maxKeys || asked.length >= maxAsked) return { asked, isCut: true }
    count += 1
    if (count % batch === 0) await otherWork()
    if (!disabled && (expiresAt === null || expiresAt > now)) asked.push(...askedOf({ group, key: id, limits }, currency, now))
  }
  return { asked, isCut: others.length > maxAsked }
}

interface Party {
  readonly group: string
  readonly key: string | null
  readonly limits: Limits
}

/** A budget that the store can be asked for. */
interface Asked {
  readonly party: Party
  readonly bucket: Bucket
}

function askedOf (party: Party, currency: string, now: number): Asked[] {
  return (currentBuckets(party.limits, currency, now) ?? []).map((bucket) => ({ party, bucket }))
}

async function readOne (
  balances: Balances, { party: { group, key }, bucket: { id, unit, amount, endsAt } }: Asked, currency: string
): Promise<BudgetStatus> {
  const { spent, held } = await balances.readBucket(id, group, key ?? undefined)
  const { period, timezone } = readBucketId(id)
  const perUnit = unit === 'cost' ? billionthsPerUnit : 1
  return {
    group,
    key,
    unit: unit === 'cost' ? currency : 'tokens',
    period,
    timezone,
    amount: amount / perUnit,
    spent: spent / perUnit,
    held: held / perUnit,
    resetsAt: endsAt,
  }
}
