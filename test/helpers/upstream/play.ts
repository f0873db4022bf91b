/** Writes one scripted reply to a socket: as whole, split, delayed, cut or stalled as the script says. */
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'

/** One reply. Everything may be left out: the default is the provider's own reply to that request. */
export interface Script {
  /** A file of `test/fixtures/replies/`: its bytes, its content type, and its usage counts into `upstream.totals`. */
  fixture?: string
  /** Default 200. */
  status?: number
  /** Added to, or replacing, the content type that a fixture brings along (`application/json` without one). */
  headers?: OutgoingHttpHeaders
  /** Body bytes; an object is sent as JSON. Replaces the fixture's. */
  body?: string | Buffer | object
  /** Encodes the body and names the encoding in `content-encoding`. */
  encoding?: 'gzip' | 'deflate' | 'br'
  /** Offsets (of the bytes sent) at which a new write begins; `events`: one write per event; `bytes`: one per byte. */
  split?: readonly number[] | 'events' | 'bytes'
  /** Awaited before each write, with its number from 0: how a test decides when the next bytes go out. */
  before?: (write: number) => unknown
  /** Closes the socket after this many body bytes; `headers`: before the status line. */
  cutAt?: number | 'headers'
  /** Stays silent for ever after this many body bytes (0: headers only); `headers`: never answers at all. */
  stallAt?: number | 'headers'
  /** A `content-length` header. Default: for bodies that are sent in one write and to their end. */
  length?: boolean
}

const encoders = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync }

const cutByScript = new WeakSet<ServerResponse>()

/** Whether the script, and not the other side, ended this exchange early. */
export function wasCut (res: ServerResponse): boolean {
  return cutByScript.has(res)
}

/** Plays `script`; true once the whole reply was handed over. */
export async function play (res: ServerResponse, script: Script): Promise<boolean> {
  if (script.stallAt === 'headers') return false
  if (script.cutAt === 'headers') return cut(res)
  const body = encoded(script, bodyOf(script))
  const stop = Math.min(Number(script.cutAt ?? Infinity), Number(script.stallAt ?? Infinity), body.length)
  const whole = script.cutAt === undefined && script.stallAt === undefined
  const writes = pieces(body.subarray(0, stop), script.split)
  sendHead(res, script, (script.length ?? (whole && writes.length < 2)) ? body.length : null)
  const closed = new Promise((resolve) => res.once('close', resolve))
  for (const [index, bytes] of writes.entries()) {
    await script.before?.(index)
    if (res.destroyed) return false
    if (!res.write(bytes)) await Promise.race([new Promise((resolve) => res.once('drain', resolve)), closed])
    if (writes.length > 1) await new Promise(setImmediate)
  }
  await script.before?.(writes.length)
  if (script.cutAt !== undefined) return cut(res)
  if (script.stallAt !== undefined || res.destroyed) return false
  res.end()
  return true
}

function sendHead (res: ServerResponse, script: Script, length: number | null): void {
  const headers: OutgoingHttpHeaders = { 'content-type': 'application/json', ...script.headers }
  if (script.encoding !== undefined) headers['content-encoding'] = script.encoding
  if (length !== null) headers['content-length'] = length
  res.writeHead(script.status ?? 200, headers)
  res.flushHeaders()
}

function bodyOf ({ body = '' }: Script): Buffer {
  if (typeof body === 'string' || Buffer.isBuffer(body)) return Buffer.from(body)
  return Buffer.from(JSON.stringify(body))
}

function encoded (script: Script, body: Buffer): Buffer {
  return script.encoding === undefined ? body : encoders[script.encoding](body)
}

function pieces (bytes: Buffer, split: Script['split']): Buffer[] {
  if (bytes.length === 0) return []
  const starts = [0, ...splitOffsets(bytes, split)]
  return starts.map((start, index) => bytes.subarray(start, starts[index + 1])).filter((piece) => piece.length > 0)
}

function splitOffsets (bytes: Buffer, split: Script['split']): readonly number[] {
  if (split === undefined) return []
  if (split === 'bytes') return [...bytes.keys()]
  if (split !== 'events') return split.filter((offset) => offset < bytes.length)
  return [...bytes.toString('latin1').matchAll(/\r\n\r\n|\n\n|\r\r/g)].map((match) => match.index + match[0].length)
}

// The bytes before it still arrive: the socket is closed after they were flushed, not reset. The request's: a reply that waits for its turn
// on the connection has none of its own yet.
function cut (res: ServerResponse): false {
  cutByScript.add(res)
  // From Node 26 what was written in the same turn would not go out.
  setImmediate(() => res.req.socket.destroySoon())
  return false
}
