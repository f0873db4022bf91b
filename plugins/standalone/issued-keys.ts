/** Keys that are made, not written: the secret is told once and only its digest kept. */
import { randomBytes } from 'node:crypto'
import { digestOf } from '../auth/keys.js'
import type { KeyRecord, KeyStore } from '../state/types.js'

export type NewKey = Pick<KeyRecord, 'group' | 'expiresAt' | 'limits' | 'label'>

/** A key with the secret that is told once. */
export interface Issued {
  readonly key: KeyRecord
  readonly secret: string
}

/** Null: the id is taken. */
export async function createKey (store: KeyStore, id: string, given: NewKey): Promise<Issued | null> {
  const secret = newSecret(id)
  const key = { ...given, id, digest: digestOf(secret), disabled: false, createdAt: Date.now() }
  return await store.create(key) ? { key, secret } : null
}

/** A new secret for an old key; the old one is worth nothing from now on. Null: no such key. */
export async function rotateKey (store: KeyStore, id: string): Promise<Issued | null> {
  const secret = newSecret(id)
  const key = await store.update(id, { digest: digestOf(secret) })
  return key === null ? null : { key, secret }
}

export function newKeyId (): string {
  return randomBytes(5).toString('hex')
}

/** The name of the key stands in its secret, so that one that leaked can be told and revoked. */
export function newSecret (id: string): string {
  return `sk-lgw-${id}-${randomBytes(32).toString('base64url')}`
}
