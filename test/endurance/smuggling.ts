/** Requests that two readers could read as one or as two (RFC 9112 11.2): each is refused, and nothing of it goes upstream. */
import { secret } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { Wire } from '../helpers/wire.js'
import { launchGateway, temporaryFolder, type Report } from './processes.js'

const body = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'
const inner = 'POST /v1/chat/completions HTTP/1.1\r\nhost: inner\r\ncontent-length: 0\r\n\r\n'

function post (headers: readonly string[], payload = body, line = 'POST /v1/chat/completions HTTP/1.1'): string {
  return [line, `authorization: Bearer ${secret}`, 'content-type: application/json', ...headers, '', payload].join('\r\n')
}

const length = `content-length: ${body.length}`
/** Whole, so that nothing but the framing can be refused. */
const chunked = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`

const smuggled: Readonly<Record<string, string>> = {
  'a length and chunks': post(['host: a', length, 'transfer-encoding: chunked'], `0\r\n\r\n${inner}`),
  'chunks and a length': post(['host: a', 'transfer-encoding: chunked', length], `0\r\n\r\n${inner}`),
  'two lengths': post(['host: a', length, 'content-length: 4']),
  'a list of lengths': post(['host: a', `content-length: ${body.length}, 4`]),
  'a signed length': post(['host: a', `content-length: +${body.length}`]),
  'a hexadecimal length': post(['host: a', `content-length: 0x${body.length.toString(16)}`]),
  'a negative length': post(['host: a', 'content-length: -1']),
  'a blank before the colon': post(['host: a', `content-length : ${body.length}`]),
  'a blank before the name': post(['host: a', ` content-length: ${body.length}`]),
  'an unknown coding': post(['host: a', 'transfer-encoding: xchunked'], chunked),
  'a coding twice': post(['host: a', 'transfer-encoding: chunked, chunked'], chunked),
  'a coding before chunked': post(['host: a', 'transfer-encoding: gzip, chunked'], chunked),
  'identity and chunked': post(['host: a', 'transfer-encoding: identity', 'transfer-encoding: chunked'], chunked),
  'chunked and identity': post(['host: a', 'transfer-encoding: chunked, identity'], chunked),
  'an odd blank before chunked': post(['host: a', 'transfer-encoding:\x0bchunked'], chunked),
  'a bare carriage return': post(['host: a\rx: y', length]),
  'a bare line feed': post([`host: a\nx: y\n\n${inner}`, length]),
  'a null in a header': post(['host: a', 'x: a\0b', length]),
  'two hosts': post(['host: a', 'host: b', length]),
  'a list of hosts': post(['host: a, b', length]),
  'a host with a blank': post(['host: a b', length]),
  'no host': post([length]),
  'a chunk that is longer than it says': post(['host: a', 'transfer-encoding: chunked'], `1\r\n${body}\r\n0\r\n\r\n`),
  'a chunk of no size': post(['host: a', 'transfer-encoding: chunked'], `\r\n${body}\r\n0\r\n\r\n`),
  'a chunk of a huge size': post(['host: a', 'transfer-encoding: chunked'], `ffffffffffffffffff\r\n${body}\r\n0\r\n\r\n`),
  'a folded header': post(['host: a', 'x: y\r\n z', length]),
  'an old version': post(['host: a', 'transfer-encoding: chunked'], chunked, 'POST /v1/chat/completions HTTP/1.0'),
  'a version that is none': post(['host: a', length], body, 'POST /v1/chat/completions HTTP/9.9'),
  'a blank in the target': post(['host: a', length], body, 'POST /v1/chat/ completions HTTP/1.1'),
}

/** What an HTTP/1.0 client or a folded header may also mean: answered as one request, and as no second. */
const oneRequest = new Set(['a folded header', 'an old version'])

/** `baseUrl`: a gateway of somebody's own; without one, ours is started in front of an upstream that counts. */
export async function smuggling ({ rounds, baseUrl }: { readonly rounds: number, readonly baseUrl?: string }): Promise<Report> {
  const folder = temporaryFolder()
  const upstream = await startUpstream()
  const gateway = baseUrl === undefined ? await launchGateway(folder.path, configFor(upstream.url)) : null
  const origin = baseUrl ?? String(gateway?.origin)
  const violations: string[] = []
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, bytes] of Object.entries(smuggled)) {
      const problem = await tried(origin, bytes, oneRequest.has(name))
      if (problem !== null) violations.push(`${name}: ${problem}`)
    }
  }
  const sent = upstream.seen.filter(({ headers }) => headers.host === 'inner' || Number(headers['content-length']) !== body.length)
  if (sent.length > 0) violations.push(`${sent.length} requests that nobody sent went upstream`)
  const served = await answered(origin, post(['host: a', length]))
  if (gateway !== null && served !== 200) violations.push(`a plain request is answered ${served} afterwards`)
  await gateway?.kill('SIGTERM')
  await upstream.close()
  folder.remove()
  return { violations, slow: [], requests: rounds * Object.keys(smuggled).length }
}

function configFor (url: string): object {
  return {
    upstreams: { main: { url, credential: 'provider-key' } },
    groups: { all: { protocols: ['chat_completions'] } },
    keys: [{ id: 'one', group: 'all', secret }],
    state: { engine: 'memory' },
    log: { level: 'fatal' },
  }
}

async function tried (origin: string, bytes: string, isOne: boolean): Promise<string | null> {
  const wire = new Wire(origin)
  wire.send(bytes)
  try {
    const { status } = await withTime(wire.reply())
    if (!isOne && status < 400) return `is served, with ${status}`
    const more = await Promise.race([
      wire.reply().then((reply) => reply.status, () => null), new Promise<null>((resolve) => setTimeout(resolve, 20, null)),
    ])
    return more !== null && more < 400 ? `is two requests, the second is answered ${more}` : null
  } catch (error) {
    // Closed without a word is a refusal, too.
    return String(error).includes('no answer') ? 'is not answered' : null
  } finally {
    wire.destroy()
  }
}

async function answered (origin: string, bytes: string): Promise<number> {
  const wire = new Wire(origin)
  wire.send(bytes)
  const { status } = await withTime(wire.reply())
  wire.destroy()
  return status
}

/** A half request is waited for by a server; that is no answer, and no harm, for as long as it may be slow. */
async function withTime<T> (reply: Promise<T>): Promise<T> {
  reply.catch(() => {})
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => { timer = setTimeout(reject, 5_000, new Error('no answer')) })
  try {
    return await Promise.race([reply, late])
  } finally {
    clearTimeout(timer)
  }
}
