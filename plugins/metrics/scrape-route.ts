import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { openMetrics, plainText, renderText } from './exposition.js'
import { OptionError } from '../core/config/options.js'
import { pageRoute } from '../core/door/own-host.js'
import type { Peers } from './peers.js'
import type { MetricsRegistry } from './registry.js'
import type { Family } from './store.js'

const compress = promisify(gzip)

interface Scrape {
  readonly contentType: string
  readonly text: string
}

/** Makes the text of one scrape, for the server's `accept` header. */
type Scraper = (accept: string) => Promise<Scrape>

/** Our own text of our cells and those of peers, as OpenMetrics if the server asks for it. */
export function storeScraper (families: readonly Family[], peers: Peers | null): Scraper {
  return async (accept) => {
    await peers?.refresh()
    const format = accept.includes('application/openmetrics-text') ? openMetrics : plainText
    return { contentType: format.contentType, text: await renderText(families, format) }
  }
}

/** Everything in the host's registry, ours included, as the registry writes it. */
export function registryScraper (registry: MetricsRegistry): Scraper {
  return async () => ({ contentType: registry.contentType, text: await registry.metrics() })
}

/**
 * Serves the scrape at `path`. It asks for no credential: keep it off the callers' network, or add a hook of your own. Compressed off the
 * event loop if the server accepts gzip; a scrape shrinks to about a twentieth.
 */
export function serveScrapes (app: FastifyInstance, path: string, hosts: readonly string[] | null, scraper: Scraper): void {
  if (app.hasRoute({ method: 'GET', url: app.prefix + path })) {
    throw new OptionError('metrics.path', `is a route of the app already: ${path}`)
  }
  app.get(path, pageRoute('metrics.hosts', hosts), async (request: FastifyRequest, reply: FastifyReply) => {
    const { contentType, text } = await scraper(String(request.headers.accept))
    reply.headers({ 'content-type': contentType, vary: 'accept, accept-encoding' })
    if (!/\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(String(request.headers['accept-encoding']))) return text
    reply.header('content-encoding', 'gzip')
    return compress(text)
  })
}
