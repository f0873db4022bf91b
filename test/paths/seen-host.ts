import Fastify, { type FastifyInstance } from 'fastify'
import { paths, createRewriteUrl, type PathsOptions, type RewriteUrlOptions } from '../../plugins/paths/index.js'
import { secret } from '../helpers/gateway.js'

export const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
export const chat = '{"model":"m", "big":12345678901234567890,"messages":[{"role":"user","content":"h\\u00e9"}]}'

/** Everything that reached the app, as a host's route sees it. */
export interface Seen {
  url: string | undefined
  originalUrl: string
  query: unknown
  llm: string | null
  body: unknown
}

/** A host with a catch-all of its own below `/v1` and `/v1beta`, in place of a mount. */
export async function build (
  t: { teardown: (close: () => unknown) => unknown }, options: PathsOptions = {}, server = {}
): Promise<{ app: FastifyInstance, seen: Seen[] }> {
  const app = Fastify(server)
  t.teardown(() => app.close())
  const seen: Seen[] = []
  await app.register(paths, options)
  for (const url of ['/v1/*', '/v1beta/*', '/llm/v1/*', '/own']) {
    app.all(url, async (request) => {
      const { llm, raw, query, body, originalUrl } = request
      seen.push({
        url: raw.url, originalUrl, query: typeof query === 'object' ? query && { ...query } : query, llm: llm?.endpoint ?? null, body,
      })
      return { ok: true }
    })
  }
  return { app, seen }
}

/** The same host, with all that it logs. */
export async function buildLogged (
  t: Parameters<typeof build>[0], options: RewriteUrlOptions = {}
): Promise<{ app: FastifyInstance, lines: string[] }> {
  const lines: string[] = []
  const logger = { level: 'trace', stream: { write: (line: string) => { lines.push(line) } } }
  return { ...await build(t, {}, { logger, rewriteUrl: createRewriteUrl(options) }), lines }
}
