/** What a response in the background used is only told by a later request. It is charged then, once, to the key that began it. */
import type { ReplyUsage } from '../core/call/call-parts.js'
import type { ModelCall } from '../core/call/model-call.js'
import { labelsOf } from '../core/config/labels.js'
import type { LedgerRecord } from '../core/money/ledger.js'
import type { Amounts, Parties } from '../core/balances/types.js'
import { memoryNotes } from '../core/upstream/memory-notes.js'
import type { Notes } from '../core/upstream/upstream.js'
import { isToldLater } from './charge.js'
import { owedBy, owesNothing, type Owed } from './ticket.js'

const keptMs = 24 * 60 * 60_000

/** The request that began such a response: what it was charged, and to whom. `id`: of its second charge. */
export interface Made extends Owed, Pick<LedgerRecord, 'id' | 'labels'> {
  readonly key: string
  readonly arrivedAt: number
  readonly model: string | null
  readonly sentModel: string | null
  readonly charged: Amounts
}

/** Waits for its note: the first one of a process can take longer than the work itself. */
interface Unwritten {
  readonly made: Made
  /** Null until the request is charged. */
  written: Promise<void> | null
}

/** Those of all apps of a process, by the names of their notes: another app may have replaced the one that made it. */
export type UnwrittenNotes = Map<string, Unwritten>

export class Later {
  readonly #notes: () => Notes | null
  readonly #failed: (error: unknown) => void
  readonly #made = new WeakMap<ModelCall, Made>()
  readonly #unwritten: UnwrittenNotes
  /** Made on first use, because an LRU cache allocates for its maximum at once. */
  #own: Notes | null = null

  constructor (unwritten: UnwrittenNotes, notes: () => Notes | null, failed: (error: unknown) => void) {
    this.#unwritten = unwritten
    this.#notes = notes
    this.#failed = failed
  }

  /**
   * Remembers a request that is charged without its usage, once it is charged: if the process is killed before, a note would have others
   * give back what was never taken. `parties`: null if it has no limits.
   */
  keep (llm: ModelCall, charged: Amounts, parties: Parties | null, settled: void | Promise<void>): void {
    const { usage: { responseId }, auth: { key }, id, arrivedAt, model, routing: { sentModel } } = llm
    if (responseId === null || key === null || !isToldLater(llm)) return
    const labels = labelsOf(llm)
    const owed = parties === null ? owesNothing : owedBy(parties)
    const rest = { key: key.id, arrivedAt, model, sentModel, charged }
    const made: Made = { id: `${id}:told`, ...rest, ...labels !== null && { labels }, ...owed }
    const name = nameOf(llm, responseId)
    const unwritten: Unwritten = { made, written: null }
    this.#unwritten.set(name, unwritten)
    Promise.resolve(settled).then(() => this.#write(name, unwritten))
  }

  #write (name: string, unwritten: Unwritten): void {
    const isNext = (): boolean => this.#unwritten.get(name) === unwritten
    if (!isNext()) return
    const written = this.#try(async (notes) => await notes.write(name, JSON.stringify(unwritten.made), keptMs))
    unwritten.written = written.then(() => { if (isNext()) this.#unwritten.delete(name) })
  }

  async #take (name: string): Promise<Made | null> {
    const unwritten = this.#unwritten.get(name)
    if (unwritten?.written === null) {
      this.#unwritten.delete(name)
      return unwritten.made
    }
    await unwritten?.written
    return await this.#try(async (notes) => JSON.parse(await notes.take?.(name) ?? 'null'))
  }

  /** Gives a request what its reply told, if it is the first to tell it. */
  async claim (llm: ModelCall, told: ReplyUsage): Promise<void> {
    const made = await this.#take(nameOf(llm, told.responseId))
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

/** Unique within its group only: callers of other groups cannot know the id, but some servers let their callers choose it. */
function nameOf ({ auth: { group } }: ModelCall, id: string | null): string {
  return `later:${String(group?.id)}:${String(id)}`
}
