/** Names of a group's records in an lmdb file. */
import { accountName } from '../../core/balances/parties.js'
import { StoreDownError } from '../../core/balances/store-down.js'

/** Names are parts of the store's keys, which have at most 1,978 bytes. */
const maxNameBytes = 500

const bucketPrefix = 'b:'

export function isBucketName (name: string): boolean {
  return name.startsWith(bucketPrefix)
}

export class GroupNames {
  readonly group: string
  /** Name of its account, and of when its holds are due. */
  readonly own: string
  /** What the names of its keys' accounts begin with. */
  readonly accounts: string
  /** What the names of its holds begin with. */
  readonly holds: string
  readonly #max: number
  readonly #ofKeys = new Map<string, string>()

  /** At most `max` account names are cached. */
  constructor (group: string, max: number) {
    this.group = group
    this.own = accountName(group)
    this.accounts = accountName(group, '')
    this.holds = `${group.length}:${fit(group)}:`
    this.#max = max
  }

  account (key: string | null): string {
    const known = key === null ? this.own : this.#ofKeys.get(key)
    if (known !== undefined) return known
    const name = accountName(this.group, fit(String(key)))
    if (this.#ofKeys.size >= this.#max) this.#ofKeys.clear()
    this.#ofKeys.set(String(key), name)
    return name
  }

  /** What the names of all buckets of a party begin with. The length keeps two parties apart. */
  buckets (key: string | null): string {
    const account = accountName(this.group, key)
    return `${bucketPrefix}${account.length}:${account}:`
  }

  bucket (key: string | null, id: string): string {
    return this.buckets(key) + id
  }

  /** Without its state and the blank after that. */
  hold (id: string): string {
    return this.holds + fit(id)
  }
}

/** Throws if the name is too long. Nothing has been changed by then. */
function fit (name: string): string {
  if (name.length > maxNameBytes / 4 && Buffer.byteLength(name) > maxNameBytes) {
    throw new StoreDownError('has no room for so long a name of a key, a group or a request', { asked: false, refused: true })
  }
  return name
}
