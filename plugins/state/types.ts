/**
 * What must survive a restart, behind three small interfaces: keys, balances and the usage ledger. The engines (memory, lmdb, Redis) differ
 * in who shares the state, and in nothing that a caller can see.
 */
import type { Balances } from '../core/balances/types.js'
import type { Ledger } from '../core/money/ledger.js'
import type { Budget, Group, Key, KeyChange, Limits } from '../core/types.js'
import type { Notes } from '../core/upstream/upstream.js'
import type { PasswordFile } from './password.js'
import type { UsageStoreConfig } from './usage-store/options.js'

export type * from '../core/balances/types.js'
export type * from '../core/money/ledger.js'
export type { KeyChange, UsageStoreConfig }

/** A key with the fields of its store. The secret is never stored: `digest` is its SHA-256. */
export interface KeyRecord extends Key {
  /** 64 lower-case hex digits. */
  readonly digest: string
  readonly label: string | null
  /** Milliseconds since the epoch. */
  readonly createdAt: number
}

/** What may change about a key. Disabling revokes it; a new digest rotates it. */
export type KeyEdit = Partial<Pick<KeyRecord, 'digest' | 'group' | 'disabled' | 'expiresAt' | 'limits' | 'label'>>

export type KeyChanges = KeyEdit | ((now: KeyRecord) => KeyEdit)

export interface KeyStore {
  /** Finds a key by its digest: SHA-256 of the secret, 64 lower-case hex digits. Null: no such key. Rejects if the store cannot answer. */
  find: (digest: string) => Promise<Key | null>
  /** Calls the listener for each change, whoever made it, on any worker and host. Returns a function that unsubscribes. */
  onChange: (listener: (change: KeyChange) => void) => () => void
  /** A key by its id. Null: no such key. Notifies nobody, unlike an update without changes. */
  read: (id: string) => Promise<KeyRecord | null>
  /** False if the id or the digest is taken. */
  create: (record: KeyRecord) => Promise<boolean>
  /**
   * Null: no such key. Resolves once the change is stored and announced. A function makes it from what the key is when it is changed:
   * others may change it meanwhile.
   */
  update: (id: string, changes: KeyChanges) => Promise<KeyRecord | null>
  /** All keys, in no certain order. */
  list: () => AsyncIterable<KeyRecord>
  close: () => Promise<void>
}

export interface LedgerConfig {
  /**
   * Size in bytes beyond which a new file is begun.
   * @defaultValue 64 MiB
   */
  readonly maxFileBytes?: number
  /**
   * Age in milliseconds beyond which a new file is begun.
   * @defaultValue 86,400,000 (a day)
   */
  readonly maxFileAgeMs?: number
  /**
   * Files are deleted when their last record is older than this, in milliseconds. A time without records counts as one day at most (or as
   * `maxFileAgeMs`, if that is longer), so that a clock that runs ahead deletes no more than that.
   * @defaultValue never
   */
  readonly keepMs?: number
}

/** Where the state is kept. The engine `redis` needs `url`. */
export type StateConfig = StateDetails & (
  | { readonly engine: 'memory' | 'lmdb', readonly url?: undefined }
  | { readonly engine: 'redis', /** `redis://[user:password@]host:port/db`. */ readonly url: string }
)

interface StateDetails {
  /**
   * Directory of the lmdb files and of the ledger.
   * @defaultValue `./data`
   */
  readonly path?: string
  /**
   * File with the password of Redis, in place of the one in `url`. Read again for each connection.
   * @defaultValue none
   */
  readonly password?: PasswordFile
  /**
   * True if `url` is one node of a Redis Cluster.
   * @defaultValue false
   */
  readonly cluster?: boolean
  /**
   * Set if `url` is a Redis Sentinel, which names the current primary; user, password and database of `url` are those of the primary.
   * `name`: of the primary. `password`: of the Sentinels themselves, read again for each connection.
   * @defaultValue none
   */
  readonly sentinel?: { readonly name: string, readonly password?: PasswordFile }
  /**
   * Prefix of every Redis key.
   * @defaultValue `llm-gateway`
   */
  readonly prefix?: string
  /**
   * How long a Redis command may take, in milliseconds.
   * @defaultValue 50
   */
  readonly commandTimeoutMs?: number
  /**
   * How long a hold outlives the last sign of its process, in milliseconds.
   * @defaultValue 60,000
   */
  readonly holdTtlMs?: number
  /**
   * The files of usage records.
   * @defaultValue `{}`
   */
  readonly ledger?: LedgerConfig
  /**
   * Where the usage records of all hosts are shipped, too.
   * @defaultValue they stay on the host that wrote them
   */
  readonly usageStore?: UsageStoreConfig
}

export interface State {
  readonly keys: KeyStore
  readonly balances: Balances
  readonly ledger: Ledger
  /** Small texts that are remembered for a while, such as which upstream made a response. */
  readonly notes: Notes
  /** What an operator should know at start; null for nothing. */
  readonly notice: string | null
  /**
   * Settles what a killed process recorded but could not settle. Resolves with the number of records that were checked; nothing has to wait
   * for it.
   */
  readonly recovered: Promise<number>
  close: () => Promise<void>
}

export type { Budget, Group, Key, Limits, Notes }
