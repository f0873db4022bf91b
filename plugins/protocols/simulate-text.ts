/**
 * What all simulated replies share: the request, one text in pieces, and an exact count. A simulated token is four characters of the
 * request's JSON, or one piece of the reply; what matters is that every reply reports its usage.
 */

/** One request to the simulated upstream. */
export interface Ask {
  /** Unique part of the reply's ids. */
  readonly id: string
  /** The id in the path; null if there is none. */
  readonly named: string | null
  /** Seconds since the epoch. */
  readonly createdAt: number
  readonly model: string
  /** The parsed body, or the query if there is none. */
  readonly body: unknown
}

/** One event of a stream. A string is sent unchanged, anything else as JSON. */
export interface SimulatedEvent {
  readonly event?: string
  readonly data: unknown
}

/** How one endpoint answers: whole, and event by event if it streams. */
export interface Simulation {
  readonly reply: (ask: Ask) => Record<string, unknown>
  readonly events?: (ask: Ask) => readonly SimulatedEvent[]
}

/** The reply's text; each of its pieces is a token. */
export const text = 'Hello! This answer comes from the simulated upstream inside the gateway: your key was known, your request was ' +
  'valid, and every token was counted.'

export const pieces: readonly string[] = text.split(/(?= )/)

/** Thinking tokens of a simulated model, where it reports any. */
export const reasoningTokens = 16

/** In place of signed or encrypted thoughts: base64, for a client to send back unchanged. */
export const signature = Buffer.from('simulated').toString('base64')

export function countTokens (value: unknown): number {
  return Math.ceil(String(JSON.stringify(value)).length / 4)
}

/** `field(body, 'stream_options', 'include_usage')`; undefined if any part is missing. */
export function field (value: unknown, ...names: readonly string[]): unknown {
  return names.reduce<unknown>((found, name) => Reflect.get(Object(found), name), value)
}

/** A whole number of a request, limited to 1 to `max`, or the default. */
export function wholeNumber (value: unknown, otherwise: number, max: number): number {
  const number = Number.isInteger(value) ? Number(value) : otherwise
  return Math.min(Math.max(number, 1), max)
}

/** Deterministic values between -1 and 1. */
export function vector (dimensions: number): number[] {
  return Array.from({ length: dimensions }, (_, index) => Math.sin(index + 1))
}
