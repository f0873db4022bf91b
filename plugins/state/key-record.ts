import { readLabels } from '../core/config/labels.js'
import type { KeyChanges, KeyRecord } from './types.js'

/** The text that a store keeps. `labels` is left out: it is read again from `label`. */
export function writeKey (record: KeyRecord): string {
  return JSON.stringify({ ...record, labels: undefined })
}

/** Throws if the text was not written by `writeKey`. */
export function readKey (text: string): KeyRecord {
  const value: unknown = JSON.parse(text)
  if (!isKeyRecord(value)) throw new Error('a stored key cannot be read')
  return withLabels(value)
}

/** Adds the labels that the record's text holds, for counting requests by them. */
export function withLabels (record: KeyRecord): KeyRecord {
  return record.label == null ? record : { ...record, labels: readLabels(record.label) }
}

export function changed (old: KeyRecord, changes: KeyChanges): KeyRecord {
  return { ...old, ...typeof changes === 'function' ? changes(old) : changes }
}

function isKeyRecord (value: unknown): value is KeyRecord {
  return typeof value === 'object' && value !== null && 'id' in value && 'digest' in value && 'group' in value && 'limits' in value
}
