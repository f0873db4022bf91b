/** What a response in the background used, which only a later request tells: it is charged then, once, to the key that made it. */
import type { ReplyUsage } from '../core/call/call-parts.js'
import type { ModelCall } from '../core/call/model-call.js'
import { labelsOf } from '../core/config/labels.js'
import type { LedgerRecord } from '../core/money/ledger.js'
import { ownedBuckets } from '../core/balances/buckets.js'
import { balancesOf, scopesOf } from '../core/balances/parties.js'
import type { Amounts, Parties } from '../core/balances/types.js'
import { memoryNotes } from '../core/upstream/memory-notes.js'
import type { Notes } from '../core/upstream/upstream.js'
import { isToldLater } from './charge.js'

const keptMs = 24 * 60 * 60_000

/** The request that made it: what it was charged, and whom. `id`: of its second charge. */
export interface Made extends Pick<LedgerRecord, 'id' | 'labels' | 'late' | 'lateBuckets' | 'lateBalances'> {
  readonly key: string
  readonly arrivedAt: number
  readonly model: string | null
  readonly sentModel: string | null
  readonly charged: Amounts
}

export class Later {
  readonly #notes: () => Notes | null
  readonly #failed: (error: unknown) => void
  readonly #made = new WeakMap<ModelCall, Made>()
  /** The first note of a process can take longer than the work itself. */
  readonly #writing = new Map<string, Promise<unknown>>()
  /** Made on first use, because an LRU cache allocates for its maximum at once. */
  #own: Notes | null = null

  constructor (notes: () => Notes | null, failed: (error: unknown) => void) {
    this.#notes = notes
    this.#failed = failed
  }

  /** Remembers a request that is charged without its usage. `parties`: null if it has no limits. */
  keep (llm: ModelCall, charged: Amounts, parties: Parties | null): void {
    const { usage: { responseId }, auth: { key }, id, arrivedAt, model, routing: { sentModel } } = llm
    if (responseId === null || key === null || !isToldLater(llm)) return
    const labels = labelsOf(llm)
    const late = parties === null ? [] : scopesOf(parties)
    const owed = parties === null ? null : { lateBuckets: ownedBuckets(parties, late), lateBalances: balancesOf(parties) }
    const rest = { key: key.id, arrivedAt, model, sentModel, charged, late }
    const made: Made = { id: `${id}:told`, ...rest, ...labels !== null && { labels }, ...owed }
    const name = nameOf(llm, responseId)
    const written = this.#try(async (notes) => await notes.write(name, JSON.stringify(made), keptMs))
    this.#writing.set(name, written.then(() => this.#writing.delete(name)))
  }

  /** Gives a request what its reply told, if it is the first to tell it. */
  async claim (llm: ModelCall, told: ReplyUsage): Promise<void> {
    const name = nameOf(llm, told.responseId)
    await this.#writing.get(name)
    const made: Made | null = await this.#try(async (notes) => JSON.parse(await notes.take?.(name) ?? 'null'))
    if (made === null) return
    llm.arrivedAt = made.arrivedAt
    llm.model = made.model
    llm.routing.sentModel = made.sentModel
    Object.assign(llm.usage, told)
    this.#made.set(llm, made)
  }

  /** Undefined if the request told nothing new. */
  madeOf (llm: ModelCall): Made | undefined {
    return llm.endpoint.replays === null ? undefined : this.#made.get(llm)
  }

  async #try<T> (ask: (notes: Notes) => Promise<T>): Promise<T | null> {
    try {
      return await ask(this.#notes() ?? (this.#own ??= memoryNotes()))
    } catch (error) {
      this.#failed(error)
      return null
    }
  }
}

/** Within its group, as others cannot know the id; some servers let their callers choose it. */
function nameOf ({ auth: { group } }: ModelCall, id: string | null): string {
  return `later:${String(group?.id)}:${String(id)}`
}
