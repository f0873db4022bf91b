import type { IncomingMessage } from 'node:http'
import { readUrl } from '../identify.js'
import { createResolve } from './resolve.js'

export interface RewriteUrlOptions {
  /** Path below which the model endpoints stand, such as `/llm`. Default: none. */
  readonly prefix?: string
}

/**
 * For hosts that own the Fastify constructor: `Fastify({ rewriteUrl: createRewriteUrl() })`. Normalizes before routing,
 * which spares the second pass of the `paths` plugin, and keeps `?key=` out of Fastify's own request log: its first
 * line is written before any hook runs (facts/telemetry.md 6).
 */
export function createRewriteUrl ({ prefix = '' }: RewriteUrlOptions = {}): (raw: IncomingMessage) => string {
  const resolve = createResolve(prefix)
  return (raw) => readUrl(resolve, raw)?.url ?? raw.url ?? '/'
}
