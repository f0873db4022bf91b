import { endpoints } from '../../plugins/protocols/index.js'
import type { Endpoint } from '../../plugins/protocols/index.js'
import { ModelCall } from '../../plugins/core/call/model-call.js'
import type { ReplyTap, TokenUsage } from '../../plugins/core/types.js'
import { planOf } from '../../plugins/usage/plan.js'
import { UsageTap } from '../../plugins/usage/tap.js'

export interface Metered {
  llm: ModelCall
  /** What the caller gets. */
  out: Buffer
}

/** A model request of the named endpoint, or of the first one of a protocol. */
export function requestFor (name: string): ModelCall {
  const endpoint = endpoints.find((known) => known.id === name || known.protocol === name)
  if (endpoint === undefined) throw new Error(`no endpoint ${name}`)
  return requestOf(endpoint)
}

function requestOf (endpoint: Endpoint): ModelCall {
  return new ModelCall({ kind: 'endpoint', endpoint, url: '/', mountLength: 0, model: null, keys: null, repair: null })
}

/** A tap on the reply to `llm`, as the plugin opens it. `released` resolves when it no longer holds the request. */
export function tapOn (
  llm: ModelCall, headers: Record<string, unknown> = {}, takeOut = false, several = false
): { tap: ReplyTap, released: Promise<void> } {
  const { usage } = llm.endpoint
  if (usage === null) throw new Error(`${llm.endpoint.id} is not metered`)
  let release = (): void => {}
  const released = new Promise<void>((resolve) => { release = resolve })
  const hold = (): void => { llm.holds += 1 }
  const options = { takeOut, told: null, hold, release: () => { llm.holds -= 1; release() } }
  const tap = new UsageTap(llm, planOf(usage, several), headers, options)
  return { tap, released }
}

/** Passes pieces of a plain reply through a tap to a clean end. */
export function meter (name: string, pieces: readonly Buffer[], headers: Record<string, unknown> = {}, takeOut = false): Metered {
  const llm = requestFor(name)
  const { tap } = tapOn(llm, headers, takeOut)
  return { llm, out: pass(tap, pieces) }
}

/** The same for a reply whose reading may end after its last byte. */
export async function meterCoded (name: string, pieces: readonly Buffer[], coding: string): Promise<Metered> {
  const llm = requestFor(name)
  const { tap, released } = tapOn(llm, { 'content-encoding': coding })
  const out = pass(tap, pieces)
  await released
  return { llm, out }
}

/** What the bytes of a reply that broke off tell. */
export function usageIn (name: string, bytes: Buffer): TokenUsage | null {
  const llm = requestFor(name)
  const { tap } = tapOn(llm)
  tap.push(bytes)
  tap.abort('upstream')
  return llm.usage.tokens
}

function pass (tap: ReplyTap, pieces: readonly Buffer[]): Buffer {
  const out: Buffer[] = []
  for (const piece of pieces) keep(out, tap.push(piece))
  keep(out, tap.end())
  return Buffer.concat(out)
}

function keep (out: Buffer[], piece: Buffer | null): void {
  if (piece !== null) out.push(piece)
}

/** `bytes` cut at the given offsets, in any order. */
export function cutAt (bytes: Buffer, offsets: readonly number[]): Buffer[] {
  const all = [0, ...[...offsets].sort((one, other) => one - other), bytes.length]
  return all.slice(1).map((end, index) => bytes.subarray(all[index], end))
}

/** One write per event, and one per byte. */
export function eventsOf (bytes: Buffer): Buffer[] {
  const ends = [...bytes.toString('latin1').matchAll(/\r\n\r\n|\n\n|\r\r/g)].map((match) => match.index + match[0].length)
  return cutAt(bytes, ends)
}

export function bytesOf (bytes: Buffer): Buffer[] {
  return [...bytes].map((byte) => Buffer.of(byte))
}
