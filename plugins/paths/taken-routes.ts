import type { FastifyInstance } from 'fastify'
import { plainTails } from '../core/url/match.js'

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/**
 * Routes of the host that its callers do not reach any more, as `GET /messages`: clients send the paths of endpoints
 * without a version, too. Not before all routes are there.
 */
export function takenRoutes (app: FastifyInstance, prefix: string): string[] {
  const urls = [...plainTails.keys(), 'models'].map((tail) => `${prefix}/${tail}`)
  return urls.flatMap((url) => methods.filter((method) => app.hasRoute({ method, url })).map((method) => `${method} ${url}`))
}
