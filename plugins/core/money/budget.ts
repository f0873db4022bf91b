/** What a budget may say, held to it where keys and groups are read. */
import { billionthPlaces, readDecimal, unitsIn } from './decimal.js'
import { checkOptions, OptionError } from '../config/options.js'
import type { Budget } from '../types.js'

export const periods = ['hour', 'day', 'week', 'month', 'total'] as const

export type Period = typeof periods[number]

/** Budgets of one party: each is counted for every request. */
const maxBudgets = 16
/** One, in units of the currency. */
export const billionth = 1e-9

/** What is counted, in whole tokens or whole billionths of the currency. */
interface BudgetAmount {
  readonly unit: 'tokens' | 'cost'
  readonly amount: number
}

/** Throws `LLM_GATEWAY_OPTION` naming the field of a budget that is wrong. */
export function checkBudgets (at: string, budgets: unknown): void {
  if (!Array.isArray(budgets)) throw new OptionError(at, 'must be a list')
  if (budgets.length > maxBudgets) throw new OptionError(at, `has more than ${maxBudgets} budgets`)
  const seen = new Set<string>()
  for (const [index, budget] of budgets.entries()) {
    const place = `${at}[${index}]`
    checkOptions(place, budget, { cost: 'anything', tokens: 'anything', period: 'anything', timezone: 'a string' })
    const name = checkBudget(place, budget)
    if (seen.has(name)) throw new OptionError(place, 'has the unit, the period and the time zone of another one')
    seen.add(name)
  }
}

/** What tells a budget from the others of its party. */
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

/** NaN where it is no amount. */
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

/** By how it was written. */
const zoneNames = new Map<string, string>()

/** A time zone in the letters of its own name, of which `europe/berlin` is no other one. Throws for what is none. */
export function zoneName (timezone: string): string {
  const known = zoneNames.get(timezone)
  if (known !== undefined) return known
  const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: timezone }).resolvedOptions()
  // What is another zone's name now stays what it was called.
  const name = timeZone.toLowerCase() === timezone.toLowerCase() ? timeZone : timezone
  zoneNames.set(timezone, name)
  return name
}
