/** Prints issued keys for programs and for people, without their digests: those are no secret, but nobody needs them. */
import { readLabels } from '../../plugins/core/config/labels.js'
import type { KeyRecord, Limits } from '../../plugins/state/types.js'
import { table } from '../table.js'
import { budgetText } from './budgets.js'

function time (ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}

export function stateOf ({ disabled, expiresAt }: KeyRecord): string {
  if (disabled) return 'revoked'
  return expiresAt !== null && expiresAt <= Date.now() ? 'expired' : 'active'
}

/** `more`: further fields, such as its secret. */
export function keyLine (key: KeyRecord, more: Readonly<Record<string, string>> = {}): string {
  const { id, group, label, expiresAt, createdAt, limits } = key
  return JSON.stringify({
    id, group, state: stateOf(key), expires: time(expiresAt), created: time(createdAt), limits, labels: readLabels(label ?? ''), ...more,
  })
}

const columns = ['id', 'group', 'state', 'expires', 'limits', 'labels'].map((title) => ({ title }))

export function keyTable (keys: readonly KeyRecord[]): string[] {
  return table(columns, keys.map((key) => {
    return [key.id, key.group, stateOf(key), time(key.expiresAt) ?? 'never', limitsText(key.limits) || '-', key.label ?? '-']
  }))
}

function limitsText ({ budgets = [], ...limits }: Limits): string {
  const texts = Object.entries(limits).map((pair) => pair.join('='))
  return (budgets.length === 0 ? texts : [...texts, `budgets=${budgets.map(budgetText).join(',')}`]).join(' ')
}
