/**
 * One line a record: eight hex digits of the CRC-32 of the JSON text, a blank, the text. Readable with any tool, and a line
 * that a crash cut off, or a disk changed, is known by itself.
 */
import { crc32 } from 'node:zlib'
import type { LedgerRecord } from './types.js'

export function writeFrame (record: LedgerRecord): string {
  // Valid inside JSON, and the end of a line to some readers.
  const text = JSON.stringify(record).replace(/[\u2028\u2029]/g, (end) => (end === '\u2028' ? '\\u2028' : '\\u2029'))
  return `${checksum(text)} ${text}\n`
}

/** Null where the line is not whole. */
export function readFrame (line: string): LedgerRecord | null {
  const text = line.slice(9)
  if (text === '' || line.slice(0, 9) !== `${checksum(text)} `) return null
  return JSON.parse(text)
}

/** The record's text in a line of bytes, one character for each byte; null where the line is not whole. */
export function frameText (line: Buffer): string | null {
  const text = line.subarray(9)
  return text.length > 0 && line.toString('latin1', 0, 9) === `${checksum(text)} ` ? text.toString('latin1') : null
}

function checksum (text: string | Buffer): string {
  return crc32(text).toString(16).padStart(8, '0')
}
