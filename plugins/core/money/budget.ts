/** Checks budgets where keys and groups are read. */
import { billionthPlaces, readDecimal, unitsIn } from './decimal.js'
import { checkOptions, OptionError } from '../config/options.js'
import type { Budget } from '../types.js'

export const periods = ['hour', 'day', 'week', 'month', 'total'] as const

export type Period = typeof periods[number]

/** Maximum number of budgets of one party: each is counted for every request. */
const maxBudgets = 16
/** To divide by: a product with 1e-9 is no 500 for 500 units. */
export const billionthsPerUnit = 1e9

/** The amount of a budget, in whole tokens or whole billionths of the currency. */
interface BudgetAmount {
  readonly unit: 'tokens' | 'cost'
  readonly amount: number
}

/** Throws `LLM_GATEWAY_OPTION` naming the wrong field of a budget. */
export function checkBudgets (at: string, budgets: unknown): void {
  if (!Array.isArray(budgets)) throw new OptionError(at, 'must be a list')
  if (budgets.length > maxBudgets) throw new OptionError(at, `has more than ${maxBudgets} budgets`)
  const seen = new Set<string>()
  for (const [index, budget] of budgets.entries()) {
    const place = `${at}[${index}]`
    checkOptions(place, budget, { anything: ['cost', 'tokens', 'period'], 'a string': ['timezone'] })
    const name = checkBudget(place, budget)
    if (seen.has(name)) throw new OptionError(place, 'has the unit, the period and the time zone of another one')
    seen.add(name)
  }
}

/** Checks one budget; returns what distinguishes it from the others of its party. */
function checkBudget (at: string, budget: Budget): string {
  const { period, timezone = 'UTC' } = budget
  if (!periods.includes(period)) throw new OptionError(`${at}.period`, `must be one of ${periods.join(', ')}`)
  if (!isZone(timezone)) throw new OptionError(`${at}.timezone`, 'is not a time zone, such as Europe/Berlin')
  if ((budget.cost === undefined) === (budget.tokens === undefined)) throw new OptionError(at, 'must have cost or tokens, one of the two')
  return `${checkAmount(at, budget).unit} ${period} ${zoneName(timezone)}`
}

function checkAmount (at: string, budget: Budget): BudgetAmount {
  const found = amountOf(budget)
  const message = found.unit === 'tokens'
    ? 'must be a whole number of at least 1'
    : 'must be a number above 0, up to 9,000,000, with at most nine decimals'
  if (!Number.isSafeInteger(found.amount) || found.amount < 1) throw new OptionError(`${at}.${found.unit}`, message)
  return found
}

/** NaN if it is no valid amount. */
export function amountOf ({ cost, tokens }: Budget): BudgetAmount {
  if (cost === undefined) return { unit: 'tokens', amount: typeof tokens === 'number' ? tokens : NaN }
  const exact = typeof cost === 'number' ? readDecimal(String(cost)) : null
  const amount = exact === null || exact.places > billionthPlaces ? NaN : Number(unitsIn(exact, billionthPlaces))
  return { unit: 'cost', amount }
}

function isZone (timezone: string): boolean {
  try {
    zoneName(timezone)
    return true
  } catch {
    return false
  }
}

/** Names by how they were written. */
const zoneNames = new Map<string, string>()

/** A time zone in its own spelling, so that `europe/berlin` is no other one. Throws for an unknown zone. */
export function zoneName (timezone: string): string {
  const known = zoneNames.get(timezone)
  if (known !== undefined) return known
  const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: timezone }).resolvedOptions()
  // A name that is an alias of another zone now is kept as it was written.
  const name = timeZone.toLowerCase() === timezone.toLowerCase() ? timeZone : timezone
  zoneNames.set(timezone, name)
  return name
}
