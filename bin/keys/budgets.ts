/** Budgets of a key, as written on the command line: `5/month`, `1000tokens/day Europe/Berlin`. */
import { checkBudgets, periods } from '../../plugins/core/money/budget.js'
import type { Budget } from '../../plugins/core/types.js'
import { UsageError } from '../io.js'

const form = /^([\d.]+(?:e-\d+)?)(tokens)?\/(\w+)(?: (\S+))?$/

/** Reads budgets; only `none` means an empty list. Throws UsageError. */
export function readBudgets (texts: readonly string[]): Budget[] {
  if (texts.length === 1 && texts[0] === 'none') return []
  const budgets = texts.map(readBudget)
  try {
    checkBudgets('--budget', budgets)
  } catch (error) {
    throw new UsageError(String(Object(error).message).replace(/^option /, ''))
  }
  return budgets
}

function readBudget (text: string): Budget {
  const [, amount = '', tokens, name, timezone] = form.exec(text) ?? []
  if (name === undefined) throw new UsageError(`--budget must be such as 5/month or "1000tokens/day Europe/Berlin", not ${text}`)
  const period = periods.find((known) => known === name)
  if (period === undefined) throw new UsageError(`--budget must be for one of ${periods.join(', ')}, not ${name}`)
  const limit = Number(amount)
  return { ...tokens === undefined ? { cost: limit } : { tokens: limit }, period, ...timezone !== undefined && { timezone } }
}

/** In the form that `readBudgets` reads. */
export function budgetText ({ cost, tokens, period, timezone }: Budget): string {
  return `${cost ?? `${tokens}tokens`}/${period}${timezone === undefined ? '' : ` ${timezone}`}`
}
