import { setTimeout as wait } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { valueAt } from '../core/body/json-object.js'
import { lastText } from '../core/body/json-text.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { Notes } from '../core/upstream/upstream.js'

const maxHeld = 10_000
/** Longer texts are no ids. */
const maxIdLength = 256
/**
 * A caller may name a reply as soon as it has it, at another process, which sees its note once that is on disk. So an id that is not known
 * is asked for again after these milliseconds, unless all members can be asked.
 */
const againMs = [10, 40, 100] as const

/** The id in a request of something that is bound to an account. */
export interface BoundId {
  readonly name: string
  /** The request only reads or deletes it, so that every member may be asked. */
  readonly isWanted: boolean
  /** Another member can answer as well, as if it had forgotten it. */
  readonly isPreference: boolean
}

/** Remembers which upstream made what is bound to its account: here, and in the state engine for other processes and hosts. */
export class Bindings {
  /** Made on first use, because an LRU cache allocates for its maximum at once. */
  #held: LRUCache<string, string> | null = null
  readonly #notes: Notes | null
  readonly #failed: (error: unknown) => void

  constructor (notes: Notes | null, failed: (error: unknown) => void) {
    this.#notes = notes
    this.#failed = failed
  }

  /** The name of the upstream; null if it is not known, or the state engine cannot answer. */
  find (id: BoundId): string | null | Promise<string | null> {
    const held = this.#held?.get(id.name)
    return held === undefined && this.#notes !== null ? this.#ask(this.#notes, id) : held ?? null
  }

  /** Called for a settled request: remembers what its reply made, or what it found. */
  keep (llm: ModelCall, upstream: string, ttlMs: number): void {
    const id = madeBy(llm)
    if (id === null || this.#held?.get(id) === upstream) return
    this.#held ??= new LRUCache({ max: maxHeld })
    this.#held.set(id, upstream, { ttl: ttlMs })
    this.#write(id, upstream, ttlMs).catch(this.#failed)
  }

  async #write (id: string, upstream: string, ttlMs: number): Promise<void> {
    await this.#notes?.write(id, upstream, ttlMs)
  }

  async #ask (notes: Notes, { name, isWanted }: BoundId): Promise<string | null> {
    try {
      let text = await notes.read(name)
      for (const ms of isWanted ? [] : againMs) {
        if (text !== null) break
        await wait(ms)
        text = await notes.read(name)
      }
      return text
    } catch (error) {
      this.#failed(error)
      return null
    }
  }
}

/** The id that a request names, in its path or its body; null for none. */
export function namedBy (llm: ModelCall): BoundId | null {
  const { method, boundIdField, heldConversation } = llm.endpoint
  const inPath = boundIdField === null ? null : idInPath(llm)
  const inBody = heldConversation === null ? textIn(llm, boundIdField) : valueAt(llm.body.json, heldConversation.id)
  const name = nameOf(llm, inPath ?? inBody)
  const isRead = method === 'GET' || method === 'DELETE'
  return name === null ? null : { name, isWanted: inPath !== null && isRead, isPreference: heldConversation !== null }
}

/** False if no later request can name the reply to this one. Asked before its body is let go. */
export function mayBeNamed ({ endpoint: { heldConversation }, body: { json } }: ModelCall): boolean {
  return heldConversation === null || typeof valueAt(json, heldConversation.sign) === 'string'
}

function nameOf ({ protocol }: ModelCall, id: unknown): string | null {
  return typeof id === 'string' && id.length <= maxIdLength ? `${protocol}:${id}` : null
}

function textIn ({ body: { json, bytes } }: ModelCall, field: string | null): string | null {
  if (field === null) return null
  if (typeof json === 'object' && json !== null) {
    const value: unknown = Reflect.get(json, field)
    return typeof value === 'string' ? value : null
  }
  return json === undefined && bytes !== null ? lastText(bytes, field) : null
}

function madeBy (llm: ModelCall): string | null {
  const { endpoint: { boundIdField, heldConversation }, upstreamReply: { status }, routing, usage } = llm
  const isKept = heldConversation === null ? boundIdField !== null : routing.boundMs > 0
  return isKept && status >= 200 && status <= 299 ? nameOf(llm, idInPath(llm) ?? usage.responseId) : null
}

function idInPath ({ endpoint, url, mountLength }: ModelCall): string | null {
  const place = endpoint.tail.indexOf(':id')
  return place < 0 ? null : String(url.slice(mountLength).split(/[/?]/)[place + 2])
}
