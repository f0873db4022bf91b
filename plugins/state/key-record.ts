import { readLabels } from '../core/config/labels.js'
import type { KeyChange, KeyRecord } from './types.js'

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

function isKeyRecord (value: unknown): value is KeyRecord {
  return typeof value === 'object' && value !== null && 'id' in value && 'digest' in value && 'group' in value && 'limits' in value
}

/** Reads a pushed message. If it cannot be understood, everything counts as changed. */
export function readChange (text: string): KeyChange {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return value
  } catch {
    // Not a message of the gateway. An error thrown from here would end the process.
  }
  return { group: '*' }
}

/** Listeners for key changes in this process. */
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
