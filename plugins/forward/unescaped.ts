/** Undoes how JSON, URLs and HTML escape characters. By hand, because a pattern with a function takes seconds for a hostile error. */
import { backslash, standsAt } from '../core/body/bytes.js'

const percent = 0x25
const ampersand = 0x26
const semicolon = 0x3b
const names: ReadonlyArray<readonly [name: string, letter: number]> = [
  ['amp;', ampersand], ['lt;', 0x3c], ['gt;', 0x3e], ['quot;', 0x22], ['apos;', 0x27],
]

/** A character, and where its escape ends. */
type Unit = readonly [letter: number, end: number]

/** The bytes without escapes. `starts` gets where each of them begins in `bytes`, and where the last one ends. */
export function unescaped (bytes: Buffer, starts: number[] | null = null): Buffer {
  const out = Buffer.allocUnsafe(bytes.length)
  let length = 0
  let at = 0
  while (at < bytes.length) {
    starts?.push(at)
    const unit = unitAt(bytes, at)
    out[length++] = unit === null ? byteAt(bytes, at) : unit[0]
    at = unit === null ? at + 1 : unit[1]
  }
  starts?.push(at)
  return out.subarray(0, length)
}

function byteAt (bytes: Buffer, at: number): number {
  return bytes[at] ?? 0
}

function unitAt (bytes: Buffer, at: number): Unit | null {
  const byte = bytes[at]
  if (byte === backslash) return slashedAt(bytes, at)
  if (byte === ampersand) return entityAt(bytes, at + 1)
  return byte === percent ? percentAt(bytes, at + 1) : null
}

/** JSON inside of JSON escapes the escapes again: up to three strokes. */
function slashedAt (bytes: Buffer, at: number): Unit | null {
  let to = at + 1
  while (to < at + 4 && bytes[to] === backslash) to++
  if (to === at + 4) return null
  const digits = standsAt('u00', bytes, to) ? to + 3 : to + 1
  const isCoded = digits === to + 3 || standsAt('x', bytes, to)
  const letter = isCoded ? numberAt(bytes, digits, 16, 2) : -1
  if (letter !== -1) return (letter === ampersand ? entityAt(bytes, digits + 2) : null) ?? [letter, digits + 2]
  if (to === bytes.length) return null
  // Before a letter it is a character itself, such as that of `\\n`, or of a secret.
  return /[\w%&]/.test(String.fromCharCode(byteAt(bytes, to))) ? [backslash, to] : [byteAt(bytes, to), to + 1]
}

/** Up to three times. */
function percentAt (bytes: Buffer, at: number): Unit | null {
  let to = at
  while (to < at + 4 && standsAt('25', bytes, to) && numberAt(bytes, to + 2, 16, 2) !== -1) to += 2
  const letter = numberAt(bytes, to, 16, 2)
  return letter === -1 ? null : [letter, to + 2]
}

/** `at`: after the `&`. */
function entityAt (bytes: Buffer, at: number): Unit | null {
  const isTwice = standsAt('amp;', bytes, at)
  const from = isTwice ? at + 4 : at
  return namedAt(bytes, from) ?? (isTwice ? [ampersand, from] : null)
}

function namedAt (bytes: Buffer, at: number): Unit | null {
  if (!standsAt('#', bytes, at)) {
    const [name, letter] = names.find(([each]) => standsAt(each, bytes, at)) ?? ['', -1]
    return letter === -1 ? null : [letter, at + name.length]
  }
  const isHex = (byteAt(bytes, at + 1) | 0x20) === 0x78
  const from = isHex ? at + 2 : at + 1
  let end = from
  while (end < from + 7 && digitOf(byteAt(bytes, end)) !== -1) end++
  const letter = bytes[end] === semicolon ? numberAt(bytes, from, isHex ? 16 : 10, end - from) : -1
  return letter === -1 ? null : [letter, end + 1]
}

/** The number that so many digits write, -1 where others stand there. */
function numberAt (bytes: Buffer, at: number, base: number, count: number): number {
  let number = 0
  for (let place = at; place < at + count; place++) {
    const digit = digitOf(byteAt(bytes, place))
    if (digit === -1 || digit >= base) return -1
    number = number * base + digit
  }
  return number
}

function digitOf (byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const small = byte | 0x20
  return small >= 0x61 && small <= 0x66 ? small - 0x57 : -1
}
