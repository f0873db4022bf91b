/**
 * One line per record: eight hex digits of the CRC-32 of the JSON text, a blank, the text. Any tool can read it, and a line that a crash
 * cut off, or that a disk changed, is recognised.
 */
import { crc32 } from 'node:zlib'
import type { LedgerRecord } from '../types.js'

/** Number of bytes in front of a record's text. */
export const frameHead = 9

export function writeFrame (record: LedgerRecord): string {
  // These are valid inside JSON, but end a line for some readers.
  const text = JSON.stringify(record).replace(/[\u2028\u2029]/g, (end) => (end === '\u2028' ? '\\u2028' : '\\u2029'))
  return `${checksum(text)} ${text}\n`
}

/** Null if the line is not a whole frame. */
export function readFrame (line: string): LedgerRecord | null {
  const text = line.slice(frameHead)
  if (text === '' || line.slice(0, frameHead) !== `${checksum(text)} `) return null
  return JSON.parse(text)
}

/** Whether the bytes from `from` to `to` are a whole frame. */
export function isFrame (bytes: Buffer, from: number, to: number): boolean {
  const start = from + frameHead
  if (to <= start || bytes[start - 1] !== 32) return false
  let expected = 0
  for (let at = from; at < start - 1; at += 1) {
    const digit = Number(bytes[at])
    const value = digit <= 57 ? digit - 48 : digit - 87
    if (value < 0 || value > 15) return false
    expected = expected * 16 + value
  }
  return crc32(bytes.subarray(start, to)) === expected
}

function checksum (text: string): string {
  return crc32(text).toString(16).padStart(8, '0')
}
