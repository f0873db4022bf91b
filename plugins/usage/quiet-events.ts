/** Finds whole events of a piece that say nothing about usage, by native search instead of a look at each byte. */
import { backslash, carriageReturn, closeObject, lineFeed, standsAt } from '../core/body/bytes.js'

/** A failure event is recognised at its start: `event: error`, `data: {"error":`, `data: {"type":"response.failed"`. */
const error = 'error'
const failed = 'failed'
const errorByte = error.charCodeAt(0)
const failedByte = failed.charCodeAt(0)
/** Offsets of these names in an event, with a blank after each colon or without. */
const namesAt = [6, 7, 8, 9, 14, 15, 16, 23, 24, 25]

/**
 * Offset up to which `chunk` holds whole events that say nothing about usage, `at` or less for none. `at`: the start of an event.
 * `signs`: texts of which every event that is to be read contains one.
 */
export function endOfQuiet (chunk: Buffer, at: number, signs: readonly string[]): number {
  let to = chunk.length
  for (const sign of signs) to = findSign(chunk, at, to, sign)
  const end = beforeFailure(chunk, at, endOfEvents(chunk, findEscapedLetter(chunk, at, to)))
  return end > at && endsInObject(chunk, end) ? end : at
}

/** Offset of the sign, `to` for none before it. */
function findSign (chunk: Buffer, from: number, to: number, sign: string): number {
  const first = sign.charCodeAt(0)
  let at = chunk.indexOf(first, from)
  while (at !== -1 && at < to && !standsAt(sign, chunk, at)) at = chunk.indexOf(first, at + 1)
  return at === -1 ? to : Math.min(at, to)
}

/**
 * Offset of the first letter that is written as `\u00..`, `to` for none. Nobody needs to write letters so, but
 * the sign of a usage object could be hidden that way.
 */
function findEscapedLetter (chunk: Buffer, from: number, to: number): number {
  let at = chunk.indexOf(backslash, from)
  while (at !== -1 && at < to && !(standsAt('u00', chunk, at + 1) && isLetterRow(chunk[at + 4]))) at = chunk.indexOf(backslash, at + 2)
  return at === -1 ? to : Math.min(at, to)
}

/** U+0040 to U+007F. */
function isLetterRow (digit: number | undefined): boolean {
  return digit !== undefined && digit >= 0x34 && digit <= 0x37
}

/** Offset after the last blank line before `to`, 0 for none. A lone CR is not taken for a line end: such a stream is read byte by byte. */
export function endOfEvents (chunk: Buffer, to: number): number {
  let at = chunk[to - 1] === lineFeed ? to - 1 : chunk.lastIndexOf(lineFeed, to)
  while (at > 0) {
    const before = chunk[at - 1] === carriageReturn ? at - 2 : at - 1
    if (chunk[before] === lineFeed) return at + 1
    at = chunk.lastIndexOf(lineFeed, at - 1)
  }
  return 0
}

/** Offset up to which whole events report no failure. A failure event is the first or the last of its piece. */
function beforeFailure (chunk: Buffer, at: number, end: number): number {
  if (end <= at || beginsFailure(chunk, at)) return at
  const last = endOfEvents(chunk, end - 3)
  return last > at && beginsFailure(chunk, last) ? last : end
}

function beginsFailure (chunk: Buffer, from: number): boolean {
  for (const place of namesAt) {
    const byte = chunk[from + place]
    if (byte === errorByte && standsAt(error, chunk, from + place)) return true
    if (byte === failedByte && standsAt(failed, chunk, from + place)) return true
  }
  return false
}

/** False for `[DONE]`, comments, and whatever else is no JSON object: those are read. */
function endsInObject (chunk: Buffer, end: number): boolean {
  const blank = chunk[end - 2] === carriageReturn ? end - 3 : end - 2
  return chunk[chunk[blank - 1] === carriageReturn ? blank - 2 : blank - 1] === closeObject
}
