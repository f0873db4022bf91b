import { isDeepStrictEqual } from 'node:util'
import type { KeyEdit, KeyRecord } from '../../plugins/state/types.js'
import { expiryAfter, labelsAfter, limitsAfter, type KeyValues } from './options.js'

export const switches = { enable: { type: 'boolean', default: false }, disable: { type: 'boolean', default: false } } as const

type EditValues = KeyValues & Readonly<Record<keyof typeof switches, boolean>>

/**
 * The changes to a key, without what is the same already: others may change the key at the same time, and what a command does not name,
 * such as that the key is revoked, must stay. Throws UsageError.
 */
export function editOf (before: KeyRecord, values: EditValues): KeyEdit {
  const { group = before.group, enable, disable } = values
  const after = {
    group,
    expiresAt: expiryAfter(before.expiresAt, values),
    limits: limitsAfter(before.limits, values),
    label: labelsAfter(before.label, values),
    disabled: disable || (before.disabled && !enable),
  }
  const edit: KeyEdit = { ...after }
  for (const name of ['group', 'expiresAt', 'limits', 'label', 'disabled'] as const) {
    if (isDeepStrictEqual(after[name], before[name])) Reflect.deleteProperty(edit, name)
  }
  return edit
}
