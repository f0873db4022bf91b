/** The options of a key on the command line. */
import type { Budget, Limits } from '../../plugins/core/types.js'
import { isLabel, maxLabels, readLabels } from '../../plugins/core/config/labels.js'
import { configOption } from '../args.js'
import { readCount, readDate, UsageError } from '../io.js'
import { readBudgets } from './budgets.js'

/** Options of every action. */
export const common = { ...configOption, json: { type: 'boolean', default: false } } as const

export const keyOptions = {
  group: { type: 'string' },
  expires: { type: 'string' },
  label: { type: 'string', multiple: true },
  'requests-per-minute': { type: 'string' },
  'tokens-per-minute': { type: 'string' },
  concurrency: { type: 'string' },
  balance: { type: 'string' },
  budget: { type: 'string', multiple: true },
} as const

export type KeyValues =
  & Readonly<Partial<Record<Exclude<keyof typeof keyOptions, 'label' | 'budget'>, string>>>
  & Readonly<Partial<Record<'label' | 'budget', readonly string[]>>>

const limitOptions = [
  ['requestsPerMinute', 'requests-per-minute', 1],
  ['tokensPerMinute', 'tokens-per-minute', 1],
  ['concurrency', 'concurrency', 1],
  ['balance', 'balance', 0],
] as const

/** The limits of a key after a command; `none` removes one. Throws UsageError. */
export function limitsAfter (before: Limits, values: KeyValues): Limits {
  const after: Limits = { ...before }
  for (const [name, option, least] of limitOptions) {
    const text = values[option]
    const limit = readCount(`--${option}`, text === 'none' ? undefined : text, least)
    if (text === 'none') delete after[name]
    if (limit !== undefined) after[name] = limit
  }
  return values.budget === undefined ? after : withBudgets(after, readBudgets(values.budget))
}

function withBudgets ({ budgets: _, ...limits }: Limits, budgets: Budget[]): Limits {
  return budgets.length === 0 ? limits : { ...limits, budgets }
}

/** The expiry after a command, in milliseconds since the epoch; `never` removes it. Throws UsageError. */
export function expiryAfter (before: number | null, { expires }: KeyValues): number | null {
  if (expires === undefined) return before
  return expires === 'never' ? null : readDate('--expires', expires)
}

/** `a=1,b=2`, the form of labels in a key record. An empty value removes a label. Throws UsageError. */
export function labelsAfter (before: string | null, { label = [] }: KeyValues): string | null {
  const labels = new Map(Object.entries(readLabels(before ?? '')))
  for (const text of label) {
    const [name = '', value = '', ...more] = text.split('=')
    if (value === '' && more.length === 0 && text.endsWith('=')) labels.delete(name)
    else if (more.length === 0 && isLabel(name, value)) labels.set(name, value)
    else throw new UsageError('--label must be NAME=VALUE, of up to 64 and 128 characters, without commas and another =')
  }
  if (labels.size > maxLabels) throw new UsageError(`--label: a key may have ${maxLabels} labels`)
  return [...labels].map((pair) => pair.join('=')).join(',') || null
}
