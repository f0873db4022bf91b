/** One HTTP exchange with nothing between the check and the bytes: no redirects, no retries, no normalized paths. */
import { request as requestHttp, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http'
import { request as requestHttps } from 'node:https'
import { parseJson } from '../../plugins/core/body/parse-json.js'

export interface Send {
  readonly method: string
  /** Request target after the base address, sent unchanged. */
  readonly path: string
  readonly headers: OutgoingHttpHeaders
  readonly body: Buffer
  /** Called with all bytes so far, whenever some arrive; true ends the exchange there. */
  readonly onBytes?: (sofar: Buffer) => unknown
  /** Aborts the exchange. */
  readonly signal?: AbortSignal
}

export interface Reply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly bytes: Buffer
  readonly text: string
  /** The parsed body, null if it is not JSON. */
  readonly json: unknown
  /** Whether the reply ended as HTTP requires. */
  readonly clean: boolean
}

/** Sends one request to `baseUrl` and reads the reply to its end, or to where it broke off. Rejects if there was none. */
export async function exchange (baseUrl: string, send: Send): Promise<Reply> {
  const base = new URL(baseUrl)
  const request = base.protocol === 'https:' ? requestHttps : requestHttp
  return await new Promise((resolve, reject) => {
    const req = request(base, {
      method: send.method,
      path: base.pathname.replace(/\/+$/, '') + send.path,
      headers: { ...(send.body.length > 0 && { 'content-length': send.body.length }), ...send.headers },
      agent: false,
      ...(send.signal && { signal: send.signal }),
    })
    req.once('error', reject)
    req.once('upgrade', (res, socket) => {
      socket.destroy()
      resolve(replyOf(res.statusCode, res.headers, Buffer.alloc(0), true))
    })
    req.once('response', (res) => {
      const chunks: Buffer[] = []
      res.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        if (send.onBytes?.(Buffer.concat(chunks)) === true) req.destroy()
      })
      res.once('error', () => {}) // told by `complete`
      res.once('close', () => resolve(replyOf(res.statusCode, res.headers, Buffer.concat(chunks), res.complete)))
    })
    req.end(send.body)
  })
}

function replyOf (status = 0, headers: IncomingHttpHeaders, bytes: Buffer, clean: boolean): Reply {
  const text = bytes.toString()
  return { status, headers, bytes, text, json: parseJson(text) ?? null, clean }
}

/** The `data:` of each server-sent event, in order; lines of one event are joined. */
export function eventsOf (text: string): string[] {
  return text.split(/\r\n\r\n|\n\n|\r\r/)
    .map(
      (event) => event.split(/\r\n|\n|\r/).filter((line) => line.startsWith('data:')).map((line) => line.slice(5).trimStart()).join('\n')
    )
    .filter((data) => data !== '')
}
