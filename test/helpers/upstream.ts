/**
 * A provider on a real socket, for tests. Answers every endpoint of `plugins/protocols/` natively, from the files in
 * `test/fixtures/replies/`, with usage that is known to the token; any single reply can be scripted instead.
 *
 * ```ts
 * const upstream = await startUpstream(t)
 * upstream.queue({ status: 429, headers: { 'retry-after': '2' }, body: { error: { message: 'slow down' } } })
 * // ... call the gateway ...
 * const request = await upstream.requests.next()
 * t.equal(request.sha256, sha256(sentBody))
 * t.strictSame(upstream.totals.messages, expectedLeaves)
 * ```
 */
import { createHash } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { TokenUsage } from '../../plugins/core/types.js'
import { nativeFixture, replyFixture, usageOf } from './upstream/native.js'
import { play, wasCut, type Script } from './upstream/play.js'
import { Signal } from './upstream/signal.js'

export { replyFixture, usageOf } from './upstream/native.js'
export type { Script } from './upstream/play.js'
export { Signal } from './upstream/signal.js'

/** One request as its bytes arrived. */
export interface UpstreamRequest {
  readonly method: string
  /** The request target, byte for byte. */
  readonly url: string
  readonly headers: IncomingHttpHeaders
  /** Names and values in turn, as received: case, order and doubles kept. */
  readonly rawHeaders: readonly string[]
  /** Empty until the whole body is there: `requests.next()` waits for it, `arrivals.next()` does not. */
  body: Buffer
  sha256: string
  /** The parsed JSON body; an empty object where it is not a JSON object. */
  json: Record<string, unknown>
  /** Resolves once the exchange is over: true where the other side left before the reply was complete. */
  readonly aborted: Promise<boolean>
  /** For what no script can say. */
  readonly raw: { readonly req: IncomingMessage, readonly res: ServerResponse }
}

/** What a test's `t` is used for. */
interface Scope {
  teardown: (close: () => Promise<void>) => unknown
}

/** Starts an upstream on a free port; `t` closes it. */
export async function startUpstream (t?: Scope, options: { port?: number } = {}): Promise<Upstream> {
  const upstream = new Upstream()
  await new Promise<void>((resolve) => upstream.server.listen(options.port ?? 0, '127.0.0.1', resolve))
  t?.teardown(async () => await upstream.close())
  return upstream
}

export function sha256 (bytes: string | Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

export class Upstream {
  readonly server: Server
  /** Every request, in the order of arrival. */
  readonly seen: UpstreamRequest[] = []
  /** Each request as soon as its headers are there. */
  readonly arrivals = new Signal<UpstreamRequest>()
  /** Each request once its body is complete. */
  readonly requests = new Signal<UpstreamRequest>()
  /** Each request whose other side left before the reply was complete. */
  readonly aborts = new Signal<UpstreamRequest>()
  /** Usage of all fixtures that were sent to their end, per protocol. */
  readonly totals: Record<string, TokenUsage> = {}
  /** Connections that are open now. */
  readonly sockets = new Set<Socket>()
  /** Answers what the queue does not; null or undefined gives the native reply. */
  respond: (request: UpstreamRequest) => Script | null | undefined = () => null
  readonly #queue: Script[] = []

  constructor () {
    this.server = createServer({ keepAliveTimeout: 60_000 }, (req, res) => { this.#handle(req, res) })
    this.server.on('connection', (socket) => {
      this.sockets.add(socket)
      socket.once('close', () => this.sockets.delete(socket))
    })
  }

  get port (): number {
    const address = this.server.address()
    return typeof address === 'object' && address !== null ? address.port : 0
  }

  get url (): string {
    return `http://127.0.0.1:${this.port}`
  }

  /** The next requests get these replies, one each, before `respond` is asked. */
  queue (...scripts: Script[]): void {
    this.#queue.push(...scripts)
  }

  /** Back to native replies: forgets what is queued and `respond`. */
  clear (): void {
    this.#queue.length = 0
    this.respond = () => null
  }

  /** Lets go of every request that was recorded, which long runs would keep. */
  forget (): void {
    this.seen.length = 0
    for (const signal of [this.arrivals, this.requests, this.aborts]) signal.clear()
  }

  async close (): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve))
    this.server.closeAllConnections()
    await closed
  }

  async #handle (req: IncomingMessage, res: ServerResponse): Promise<void> {
    const request = this.#record(req, res)
    const chunks: Buffer[] = []
    try {
      for await (const chunk of req) chunks.push(chunk)
    } catch {
      return // the other side left: `aborts` tells it
    }
    request.body = Buffer.concat(chunks)
    request.sha256 = sha256(request.body)
    request.json = jsonObject(request.body)
    this.requests.push(request)
    await this.#answer(request, res)
  }

  #record (req: IncomingMessage, res: ServerResponse): UpstreamRequest {
    const { method = '', url = '', headers, rawHeaders } = req
    const aborted = new Promise<boolean>((resolve) => {
      res.once('close', () => resolve(!res.writableFinished && !wasCut(res)))
    })
    const request: UpstreamRequest = {
      method, url, headers, rawHeaders, body: Buffer.alloc(0), sha256: '', json: {}, aborted, raw: { req, res },
    }
    aborted.then((left) => { if (left) this.aborts.push(request) })
    this.seen.push(request)
    this.arrivals.push(request)
    return request
  }

  async #answer (request: UpstreamRequest, res: ServerResponse): Promise<void> {
    const script = this.#queue.shift() ?? this.respond(request) ?? {}
    const { json, method, headers } = request
    const [path = '', query = ''] = request.url.split(/\?(.*)/s)
    const fixture = script.body === undefined ? script.fixture ?? nativeFixture({ method, path, query, headers, json }) : null
    if (fixture === null) {
      await play(res, script.body === undefined ? { status: 404, body: nobody, ...script } : script)
      return
    }
    const done = await play(res, {
      ...script, body: replyFixture(fixture), headers: { 'content-type': contentType(fixture), ...script.headers },
    })
    if (done) this.#report(fixture)
  }

  #report (fixture: string): void {
    const reported = usageOf[fixture]
    if (reported === undefined) return
    const { protocol, leaves } = reported
    this.totals[protocol] = addLeaves(this.totals[protocol], leaves)
  }
}

const nobody = { error: { message: 'the mock upstream serves no such path' } }

function contentType (fixture: string): string {
  return fixture.endsWith('.sse') ? 'text/event-stream' : 'application/json'
}

function jsonObject (body: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body.toString())
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

function addLeaves (sum: TokenUsage | undefined, leaves: TokenUsage): TokenUsage {
  if (sum === undefined) return { ...leaves }
  const total = { ...sum }
  for (const leaf of Object.keys(leaves) as Array<keyof TokenUsage>) total[leaf] += leaves[leaf]
  return total
}
