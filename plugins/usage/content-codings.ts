/** Content codings of replies: which can be decoded here, and which a caller may accept. */
import * as zlib from 'node:zlib'
import type { IncomingHttpHeaders } from 'node:http'
import type { Transform } from 'node:stream'
import { codingNames, isZlib } from '../core/body/coding-names.js'

/** Opens a decoder for bytes that begin with `first`. */
export type Open = (first: number) => Transform

const zlibOptions = { finishFlush: zlib.constants.Z_SYNC_FLUSH }
const brotliOptions = { finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH }

/** The content codings that this Node can decode (zstd from 22.15 on). */
export function codingsOf (library: object): ReadonlyMap<string, Open> {
  const openGzip = (): Transform => zlib.createGunzip(zlibOptions)
  const codings = new Map<string, Open>([
    ['gzip', openGzip],
    ['x-gzip', openGzip],
    ['deflate', (first) => isZlib(first) ? zlib.createInflate(zlibOptions) : zlib.createInflateRaw(zlibOptions)],
    ['br', () => zlib.createBrotliDecompress(brotliOptions)],
  ])
  const zstd: unknown = Reflect.get(library, 'createZstdDecompress')
  if (typeof zstd === 'function') codings.set('zstd', () => zstd())
  return codings
}

export const codings = codingsOf(zlib)

const none: readonly Open[] = []

/** Decoders for each of a reply's codings, in the order in which they were applied; null if one is unknown, or there are too many. */
export function openersOf (header: string): readonly Open[] | null {
  if (header === '') return none
  const names = codingNames(header)
  if (names === null) return null
  const openers = names.flatMap((name) => codings.get(name) ?? [])
  return openers.length === names.length ? openers : null
}

/** Matches a list of codings that can be decoded. Each round consumes a name, so that matching is linear. */
const readable = new RegExp(`^(?:\\s*(?:${[...codings.keys(), 'identity'].join('|')})\\s*(?:;[^,]*)?(?:,|$))+$`, 'i')

/**
 * Reduces the codings that a caller accepts to those that can be decoded here: in any other, the reply would be paid for and not
 * counted. `*` counts as another one. Older Nodes have no zstd, which agents name and providers use.
 */
export function acceptReadable (headers: IncomingHttpHeaders): void {
  const accepted = headers['accept-encoding']
  if (accepted === undefined || readable.test(accepted)) return
  headers['accept-encoding'] = accepted.split(',').filter((coding) => readable.test(coding)).join(',') || 'identity'
}
