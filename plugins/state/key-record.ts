import { readLabels } from '../core/config/labels.js'
import type { KeyChange, KeyRecord } from './types.js'

/** The text that a store keeps: the same for a record as it was read, whose labels stand in it as text already. */
export function writeKey (record: KeyRecord): string {
  return JSON.stringify({ ...record, labels: undefined })
}

/** Throws where the text was not written by `writeKey`. */
export function readKey (text: string): KeyRecord {
  const value: unknown = JSON.parse(text)
  if (!isKeyRecord(value)) throw new Error('a stored key cannot be read')
  return withLabels(value)
}

/** The labels that stand in a record's text, for who counts requests by them. */
export function withLabels (record: KeyRecord): KeyRecord {
  return record.label == null ? record : { ...record, labels: readLabels(record.label) }
}

function isKeyRecord (value: unknown): value is KeyRecord {
  return typeof value === 'object' && value !== null && 'id' in value && 'digest' in value && 'group' in value && 'limits' in value
}

/** What a pushed message says; everything is stale where it says nothing that is understood. */
export function readChange (text: string): KeyChange {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return value
  } catch {
    // Not ours. Thrown from here, it would end the process.
  }
  return { group: '*' }
}

/** Who hears of changes in this process. */
export class Listeners {
  readonly #listeners = new Set<(change: KeyChange) => void>()

  readonly add = (listener: (change: KeyChange) => void): (() => void) => {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  readonly tell = (change: KeyChange): void => {
    for (const listener of this.#listeners) listener(change)
  }
}
