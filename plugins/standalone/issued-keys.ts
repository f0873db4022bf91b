/** Keys that are generated: the secret is shown once and only its digest is kept. */
import { randomBytes } from 'node:crypto'
import { digestOf } from '../auth/keys.js'
import type { KeyRecord, KeyStore } from '../state/types.js'

type NewKey = Pick<KeyRecord, 'group' | 'expiresAt' | 'limits' | 'label'>

/** A key with its secret, which is shown once. */
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

/** A new secret for an existing key; the old one is invalid from now on. Null: no such key. */
export async function rotateKey (store: KeyStore, id: string): Promise<Issued | null> {
  const secret = newSecret(id)
  const key = await store.update(id, { digest: digestOf(secret) })
  return key === null ? null : { key, secret }
}

export function newKeyId (): string {
  return randomBytes(5).toString('hex')
}

/** The secret contains the key's id, so that a leaked one can be identified and revoked. */
export function newSecret (id: string): string {
  return `sk-lgw-${id}-${randomBytes(32).toString('base64url')}`
}
