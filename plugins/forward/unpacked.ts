import * as zlib from 'node:zlib'
import { codingNames, isZlib } from '../core/body/coding-names.js'
import type { Headers } from './raw-headers.js'

type Unpack = (bytes: Buffer) => unknown

/** The content codings whose whole bodies this Node reads (zstd from 22.15 on), up to so many bytes of what comes out. */
export function unpackers (library: object, maxOutputLength: number): ReadonlyMap<string, Unpack> {
  const bounds = { maxOutputLength, finishFlush: zlib.constants.Z_SYNC_FLUSH }
  const gunzip = (bytes: Buffer): Buffer => zlib.gunzipSync(bytes, bounds)
  const all = new Map<string, Unpack>([
    ['gzip', gunzip],
    ['x-gzip', gunzip],
    ['deflate', (bytes) => isZlib(Number(bytes[0])) ? zlib.inflateSync(bytes, bounds) : zlib.inflateRawSync(bytes, bounds)],
    ['br', (bytes) => zlib.brotliDecompressSync(bytes, { maxOutputLength })],
  ])
  const zstd: unknown = Reflect.get(library, 'zstdDecompressSync')
  if (typeof zstd === 'function') all.set('zstd', (bytes) => zstd(bytes, { maxOutputLength }))
  return all
}

/** A decompressed body, null if it cannot be read. `coding`: the `content-encoding` header, in the order in which codings were applied. */
export function unpacked (body: Buffer, coding: string, codings: ReadonlyMap<string, Unpack>): Buffer | null {
  const names = codingNames(coding)
  if (names === null) return null
  try {
    return names.reduceRight((bytes: Buffer | null, name) => {
      const read = bytes === null ? null : codings.get(name)?.(bytes)
      return Buffer.isBuffer(read) ? read : null
    }, body)
  } catch {
    return null
  }
}

/** For errors, of which 256 KiB are held at most: no more than sixteen times as much is decompressed. */
const codings = unpackers(zlib, 4 * 1024 * 1024)

/** The decompressed body of an error, null if it cannot be read. */
export function saidBy (body: Buffer, { 'content-encoding': coding }: Headers): Buffer | null {
  return unpacked(body, String(coding ?? ''), codings)
}
