/** Keys that are made, not written: the secret is told once and only its digest kept. */
import { randomBytes } from 'node:crypto'
import { digestOf } from '../auth/groups.js'
import type { KeyRecord, KeyStore } from '../state/types.js'

export type NewKey = Pick<KeyRecord, 'group' | 'expiresAt' | 'limits' | 'label'>

/** Null: the id is taken. */
export async function issueKey (store: KeyStore, id: string, key: NewKey): Promise<string | null> {
  const secret = newSecret(id)
  const created = await store.create({ ...key, id, digest: digestOf(secret), disabled: false, createdAt: Date.now() })
  return created ? secret : null
}

/** A new secret for an old key; the old one is worth nothing from now on. Null: no such key. */
export async function rotateKey (store: KeyStore, id: string): Promise<string | null> {
  const secret = newSecret(id)
  return await store.update(id, { digest: digestOf(secret) }) === null ? null : secret
}

/** False: no such key. */
export async function revokeKey (store: KeyStore, id: string): Promise<boolean> {
  return await store.update(id, { disabled: true }) !== null
}

export function newKeyId (): string {
  return randomBytes(5).toString('hex')
}

/** The name of the key stands in its secret, so that one that leaked can be told and revoked. */
function newSecret (id: string): string {
  return `sk-lgw-${id}-${randomBytes(32).toString('base64url')}`
}
