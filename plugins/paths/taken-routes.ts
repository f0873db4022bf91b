import type { FastifyInstance } from 'fastify'
import { plainTails } from '../core/url/match.js'

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/**
 * Routes of the host that callers can no longer reach, such as `GET /messages`: clients send the paths of endpoints without a version, too.
 * Must not be called before all routes are registered.
 */
export function takenRoutes (app: FastifyInstance, prefix: string): string[] {
  const urls = [...plainTails.keys(), 'models'].map((tail) => `${prefix}/${tail}`)
  return urls.flatMap((url) => methods.filter((method) => app.hasRoute({ method, url })).map((method) => `${method} ${url}`))
}
