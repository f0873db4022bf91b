/** A record of each metered request, as the limits write it and as each engine of the state keeps it. */
import type { OwnedBucket, Scope } from '../balances/types.js'
import type { Served } from './cost.js'
import type { Labels, ModalityTokens, Outcome, TokenUsage } from '../types.js'

/** What a cost is worked out from, besides the leaves. A field that does not apply is absent. */
export interface LedgerBill {
  /** When the request arrived: the prices of that time apply. */
  readonly startedAt: number
  /** The model that replied, if its name differs from the one asked for. */
  readonly model?: string
  /** The `priceFactor` of the upstream. */
  readonly factor?: string
  readonly modalities?: readonly ModalityTokens[]
  readonly speed?: string
  readonly region?: string
  readonly counts?: Served['counts']
  readonly tools?: NonNullable<Served['tools']>
  /** What the provider says it costs. */
  readonly statedCost?: string
}

/** What a request cost. A field that does not apply is absent, as in records of a gateway without prices. */
export interface LedgerCost {
  /** Exact decimal text, the sum of the parts; null if no part has a price. */
  readonly cost?: string | null
  /** ISO 4217. */
  readonly currency?: string
  /** Digest of the price list's entry. */
  readonly price?: string
  /** By leaf, kind of content or unit; null for a part without a price. */
  readonly costParts?: Readonly<Record<string, string | null>>
  /** As the reply reports it. */
  readonly serviceTier?: string
  readonly labels?: Labels
  readonly bill?: LedgerBill
}

/** One metered request, as it is exported. Times are milliseconds since the epoch. */
export interface LedgerRecord extends TokenUsage, LedgerCost {
  /** When the reply ended. */
  readonly time: number
  /** The gateway's own id of the request: the `id` of its log line, and its `x-request-id` if the upstream gave none. */
  readonly id: string
  readonly key: string | null
  readonly group: string | null
  readonly protocol: string
  /** As the caller named it, or as the reply does if the caller named none; at most 128 characters. */
  readonly model: string | null
  /** The upstream's own name for it, if that differs. */
  readonly upstreamModel?: string
  readonly outcome: Outcome
  /**
   * Tokens taken from the balances: the sum of the leaves, and of `bill.tools` if it names its model; another number if the reply broke
   * off.
   */
  readonly charged: number
  /** Parties whose store was away when the request was admitted: charged when it is back. */
  readonly late: readonly Scope[]
  /** Their budgets. */
  readonly lateBuckets?: readonly OwnedBucket[]
  /** Those of them that have a balance; absent in records of an older version, where all of them are charged. */
  readonly lateBalances?: readonly Scope[]
  /** What was taken from budgets in money, billionths of the currency; absent for nothing. */
  readonly chargedCost?: number
}

export interface LedgerRange {
  /** Inclusive; default: everything. */
  readonly from?: number
  /** Exclusive. */
  readonly to?: number
  /** Called during reading, with the bytes (or records, in memory) done and in all. */
  readonly onProgress?: (done: number, total: number) => void
  /** Called for every line that is not a whole record, with its file. */
  readonly onDamage?: (file: string) => void
}

/** Called when something failed; `again`: it failed the last time, too. */
export type Trouble = (error: unknown, again: boolean) => void

/** How records go on to a usage store that has those of all hosts. */
export interface Shipping {
  /** Records of this host that are not there yet. */
  readonly unshipped: number
  /** Age of the oldest of them, in milliseconds; 0 if there is none. */
  readonly lagMs: number
  /** Listens to each time that the store could not be asked, or refused a record. Returns a function that stops it. */
  readonly onTrouble: (listener: Trouble) => () => void
}

export interface Ledger {
  /** Resolves once the record cannot be lost by a crash; many records share one write. Rejects when it could not be kept. */
  append: (record: LedgerRecord) => Promise<void>
  /** Resolves when everything appended so far is kept, or refused by the disk. That is tried again, but nobody should wait for it. */
  flush: () => Promise<void>
  /** Listens to each write that failed. Returns a function that stops it. */
  readonly onTrouble?: (listener: Trouble) => () => void
  /** Null where records go to no usage store. */
  readonly shipping?: Shipping | null
  /** Records in the order in which they were kept. */
  read: (range?: LedgerRange) => AsyncIterable<LedgerRecord>
  /** The newest records of processes that did not settle all that they recorded, or may not have: they were killed. */
  unsettled: () => AsyncIterable<LedgerRecord>
  /** This process could not settle a record: its newest ones are `unsettled`, however it ends. */
  readonly noteUnsettled?: () => void
  /** Keeps what is still to be kept, and ends. */
  close: () => Promise<void>
}
