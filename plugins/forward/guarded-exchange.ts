import type { Call } from '../core/upstream/upstream.js'
import { writeLog } from '../core/write-log.js'
import { Exchange } from './exchange.js'
import type { ExchangeContext, ExchangeDone, Transport } from './exchange-context.js'
import { readHeaders, type Headers } from './raw-headers.js'
import { isCoded, isPage, isUncompressed } from './reply-headers.js'
import { PieceMask, SecretSearch } from './secret-mask.js'
import { saidBy } from './unpacked.js'
import { secretsOf, type MountRequest } from './upstream-secrets.js'

/** A longer error, such as one that repeats the whole request, is passed on as it comes. */
const maxHeldBytes = 256 * 1024
/** How long a caller waits for the rest of an error, which providers send at once. */
const maxHeldMs = 1_000

const nothing: Buffer = Buffer.alloc(0)

/** An error that is held until its end. */
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
 * An exchange that keeps the upstream's secret out of errors. Some providers repeat it in full: Google names a suspended key,
 * compatible servers an unknown one. An error that contains it, or cannot be read, is replaced by one of ours. If more of it has passed
 * than is held, or a reply of success reports a failure, the secret is masked.
 */
export class GuardedExchange extends Exchange {
  readonly #mount: MountRequest | null
  /** Every call that was sent, the current one last. */
  readonly #calls: Call[] = []
  #held: Held | null = null
  #mask: PieceMask | null = null
  /** For a failure that a reply of success reports. */
  #failure: PieceMask | null = null

  /** `mount`: what the host's mount sends; null if an upstream of ours is asked. */
  constructor (context: ExchangeContext, transport: Transport, done: ExchangeDone, mount: MountRequest | null = null) {
    super(context, transport, done)
    this.#mount = mount
  }

  /** Before each attempt. */
  sends (call: Call): void {
    this.#calls.push(call)
  }

  override onHeaders (status: number, raw: Buffer[], resume: () => void): boolean {
    // A redirection may repeat the request's address, whose query may contain a key.
    if (status < 300 || status === 304) return super.onHeaders(status, raw, resume)
    const headers = readHeaders(raw)
    if (isCoded(headers)) return super.onHeaders(status, raw, resume)
    // Its bytes are passed on by a function of the host's alone.
    if (isPage(status, headers) && !this.context.streamOnly) return super.onHeaders(status, this.#safe(raw), resume)
    const held: Held = { status, raw, resume, headers, body: [], bytes: 0, timer: setTimeout(() => this.#timeIsUp(held), maxHeldMs) }
    this.#held = held
    // However it ends, the upstream has refused, and no usage is missing.
    Object.assign(this.context.llm.upstreamReply, { status, tapped: true })
    return true
  }

  override onData (chunk: Buffer): boolean {
    const held = this.#held
    if (held === null) return super.onData(this.#mask === null ? chunk : this.#mask.push(chunk))
    held.body.push(chunk)
    held.bytes += chunk.length
    return held.bytes <= maxHeldBytes || this.#passLarge(held)
  }

  override onComplete (): void {
    const held = this.#held
    if (held !== null) {
      if (this.#tells(held)) this.#passWithout(held)
      else this.#passOn(held)
    }
    if (this.#mask !== null) super.onData(this.#mask.end())
    super.onComplete()
  }

  /** An error that broke off is a failure like any other. */
  override onError (error: Error): void {
    this.#release()
    super.onError(error)
  }

  /** Masks a reply of success from where it reports a failure; otherwise it passes unchanged. */
  override guarded (piece: Buffer | null, failed: boolean): Buffer {
    if (piece === null) return this.#failure?.end() ?? nothing
    if (this.#failure !== null) return this.#failure.push(piece)
    if (!failed) return piece
    const search = this.#search()
    if (search === null) return piece
    this.#failure = new PieceMask(search)
    return this.#failure.push(piece)
  }

  holdNoLonger (): void {
    if (this.#held !== null) this.#timeIsUp(this.#held)
  }

  /** An incomplete error cannot be searched. */
  #timeIsUp (held: Held): void {
    if (this.#search() === null) this.#passOn(held)
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

  /** Compressed bytes cannot be searched before their end. */
  #passLarge (held: Held): boolean {
    const search = this.#search()
    if (search === null) return this.#passOn(held)
    if (!isUncompressed(held.headers) || this.#tells(held)) {
      this.#passWithout(held)
      return true
    }
    this.#mask = new PieceMask(search)
    return this.#passOn({ ...held, body: [this.#mask.push(Buffer.concat(held.body))] })
  }

  #passWithout ({ status, raw, resume }: Held): void {
    this.#release()
    const { request, llm: { routing: { upstream } } } = this.context
    writeLog(request.log, 'warn', { upstream, status }, 'the error of an upstream may hold its secret, and is not passed on')
    // As for an HTML page, whose bytes and most headers are not passed on. A function of the host's may pass them on all the same.
    const kept = Object.entries({ ...readHeaders(this.#safe(raw)), 'content-type': 'text/html', 'content-length': '0' })
    super.onHeaders(status, kept.flatMap(([name, value]) => [Buffer.from(name), Buffer.from(String(value), 'latin1')]), resume)
  }

  /** The headers that tell no secret. */
  #safe (raw: Buffer[]): Buffer[] {
    const search = this.#search()
    return search === null ? raw : raw.filter((_, at) => !search.isIn(Buffer.concat(raw.slice(at - at % 2, at - at % 2 + 2))))
  }

  #tells ({ raw, body, headers }: Held): boolean {
    const search = this.#search()
    if (search === null) return false
    const plain = saidBy(Buffer.concat(body), headers)
    return plain === null || search.isIn(Buffer.concat([...raw, plain]))
  }

  /** Null if there is no secret to keep. */
  #search (): SecretSearch | null {
    const secrets = secretsOf(this.context.destination?.upstreams ?? [], this.#calls, this.#mount)
    return secrets.length === 0 ? null : new SecretSearch(secrets)
  }
}
