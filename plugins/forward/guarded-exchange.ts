import * as zlib from 'node:zlib'
import type { IncomingHttpHeaders } from 'node:http'
import { carriesCredential } from '../core/carriers.js'
import type { Upstream } from '../core/upstream.js'
import { isCarrier } from '../core/url/query.js'
import { writeLog } from '../core/write-log.js'
import { Exchange } from './exchange.js'
import type { ExchangeContext, ExchangeDone, Transport } from './exchange-context.js'
import { readHeaders, type Headers } from './raw-headers.js'
import { isCoded, isPage } from './reply-headers.js'

/** No provider has this much to say of a failure. What is longer is passed on as it comes. */
const maxHeldBytes = 256 * 1024
/** A caller need not wait for the rest of an error, which providers send at once. */
const maxHeldMs = 1_000
/** A shorter text may stand in an error by chance. */
const minSecretLength = 8

/** An error that is held to its end. */
interface Held {
  readonly status: number
  readonly raw: Buffer[]
  readonly resume: () => void
  readonly headers: Headers
  readonly body: Buffer[]
  bytes: number
  readonly timer: NodeJS.Timeout
}

/**
 * An exchange whose caller does not read the upstream's secret in an error. Some providers write it there whole: Google names a key that is
 * suspended, compatible servers the one that they do not know. An error that holds it, or cannot be read, is told in words of ours.
 */
export class GuardedExchange extends Exchange {
  readonly #context: ExchangeContext
  /** What the host's mount sends, null where the upstreams of the group have the secret. */
  readonly #sent: IncomingHttpHeaders | null
  #held: Held | null = null

  constructor (context: ExchangeContext, transport: Transport, done: ExchangeDone, sent: IncomingHttpHeaders | null = null) {
    super(context, transport, done)
    this.#context = context
    this.#sent = sent
  }

  override onHeaders (status: number, raw: Buffer[], resume: () => void): boolean {
    // A redirection repeats the address that was asked, whose query may hold a key.
    if (status < 300 || status === 304) return super.onHeaders(status, raw, resume)
    const headers = readHeaders(raw)
    // Neither is passed on.
    if (isCoded(headers) || isPage(status, headers)) return super.onHeaders(status, raw, resume)
    const held: Held = { status, raw, resume, headers, body: [], bytes: 0, timer: setTimeout(() => this.#timeIsUp(held), maxHeldMs) }
    this.#held = held
    // However it ends from here on, it is known that the upstream refused, and no usage is missed.
    Object.assign(this.#context.llm.upstreamReply, { status, tapped: true })
    return true
  }

  override onData (chunk: Buffer): boolean {
    const held = this.#held
    if (held === null) return super.onData(chunk)
    held.body.push(chunk)
    held.bytes += chunk.length
    return held.bytes <= maxHeldBytes || this.#passOn(held)
  }

  override onComplete (): void {
    const held = this.#held
    if (held !== null) {
      if (this.#tells(held)) this.#passWithout(held)
      else this.#passOn(held)
    }
    super.onComplete()
  }

  /** What broke off has no end to be held to, and is a failure as any other. */
  override onError (error: Error): void {
    this.#release()
    super.onError(error)
  }

  /** What is not all there cannot be looked through. */
  #timeIsUp (held: Held): void {
    if (this.#secrets().length === 0) this.#passOn(held)
    else this.#passWithout(held)
  }

  #release (): void {
    clearTimeout(this.#held?.timer)
    this.#held = null
  }

  #passOn ({ status, raw, resume, body }: Held): boolean {
    this.#release()
    let goesOn = super.onHeaders(status, raw, resume)
    for (const chunk of body) goesOn = super.onData(chunk)
    return goesOn
  }

  #passWithout ({ status, headers, resume }: Held): void {
    this.#release()
    const { request, llm: { routing: { upstream } } } = this.#context
    writeLog(request.log, 'warn', { upstream, status }, 'the error of an upstream may hold its secret, and is not passed on')
    // As a page is, whose bytes and headers stay behind.
    const kept = Object.entries({ ...headers, 'content-type': 'text/html', 'content-length': '0' })
    super.onHeaders(status, kept.flatMap(([name, value]) => [Buffer.from(name), Buffer.from(String(value), 'latin1')]), resume)
  }

  #tells ({ raw, body, headers }: Held): boolean {
    const secrets = this.#secrets()
    if (secrets.length === 0) return false
    const plain = unpacked(Buffer.concat(body), String(headers['content-encoding'] ?? ''))
    if (plain === null) return true
    const text = unescaped(Buffer.concat([...raw, plain]).toString('latin1'))
    return secrets.some((secret) => text.includes(secret) || text.includes(encodeURIComponent(secret)))
  }

  #secrets (): string[] {
    const upstreams = this.#context.destination?.upstreams ?? []
    const all = [...upstreams.flatMap(secretsOf), ...Object.entries(this.#sent ?? {}).flatMap(secretIn)]
    return all.filter(({ length }) => length >= minSecretLength)
  }
}

function secretsOf ({ secret, headers, query }: Upstream): string[] {
  const inQuery = [...new URLSearchParams(query)].flatMap(([name, value]) => isCarrier(name) ? [value] : [])
  return [secret.known() ?? [], headers.flatMap(secretIn), inQuery].flat()
}

/** Without its scheme. */
function secretIn ([name, value]: readonly [string, unknown]): string[] {
  return carriesCredential(name) ? [String(value).replace(/^\S+ +/, '')] : []
}

/** Serializers of JSON escape more than they must: slashes, and what HTML could take for its own, such as the `=` at the end of a key. */
function unescaped (text: string): string {
  return text.replaceAll('\\/', '/').replace(/\\u00([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
}

const codings: ReadonlyMap<string, (bytes: Buffer) => Buffer> = new Map([
  ['gzip', (bytes) => zlib.gunzipSync(bytes, bounds)],
  ['x-gzip', (bytes) => zlib.gunzipSync(bytes, bounds)],
  ['deflate', (bytes) => (Number(bytes[0]) & 0x0f) === 8 ? zlib.inflateSync(bytes, bounds) : zlib.inflateRawSync(bytes, bounds)],
  ['br', (bytes) => zlib.brotliDecompressSync(bytes, { maxOutputLength: bounds.maxOutputLength })],
])

const bounds = { maxOutputLength: 16 * maxHeldBytes, finishFlush: zlib.constants.Z_SYNC_FLUSH }

/** Null for what cannot be read. */
function unpacked (body: Buffer, coding: string): Buffer | null {
  const names = coding.toLowerCase().split(',').map((name) => name.trim()).filter((name) => name !== '' && name !== 'identity')
  try {
    return names.reduceRight((bytes: Buffer | null, name) => bytes === null ? null : codings.get(name)?.(bytes) ?? null, body)
  } catch {
    return null
  }
}
