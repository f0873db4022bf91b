/**
 * Pages without a credential rely on who can reach them, and a browser can reach whatever its owner can. A foreign web page whose name
 * suddenly resolves to this machine (DNS rebinding) could read them; its requests are recognised by that name. Addresses and names without
 * a dot belong to nobody on the internet.
 */
import { isIP } from 'node:net'
import type { FastifyReply, FastifyRequest, FastifySchema } from 'fastify'
import { checkTexts, OptionError } from '../config/options.js'

/** Throws `LLM_GATEWAY_OPTION` where an option is given and is no list of names of hosts. */
export function checkHosts (option: string, hosts: readonly string[] | undefined): void {
  checkTexts(option, hosts)
  const wrong = hosts?.findIndex((host) => /[/:*\s]/.test(host)) ?? -1
  if (wrong >= 0) throw new OptionError(`${option}[${wrong}]`, 'must be a name alone, without a scheme and a port')
}

interface PageRoute {
  readonly logLevel: 'warn'
  readonly schema: FastifySchema & { readonly hide: true }
  readonly onRequest?: (request: FastifyRequest, reply: FastifyReply) => Promise<void>
}

/**
 * Options for a route that is not for callers: without log lines, left out of the API document that `@fastify/swagger` makes of the app,
 * and answering only to addresses, names without a dot, and `hosts`; null for no check.
 */
export function pageRoute (option: string, hosts: readonly string[] | null): PageRoute {
  const route: PageRoute = { logLevel: 'warn', schema: { hide: true } }
  if (hosts === null) return route
  const names = hosts.map((host) => host.toLowerCase())
  return {
    ...route,
    async onRequest ({ headers }, reply) {
      if (isOwnHost(headers, names)) return
      await reply.code(403).headers({ 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' })
        .send(`This answers to addresses and localhost, and to other names where ${option} lists them.\n`)
    },
  }
}

/** Whether a request names an address, a name without a dot, or one of `names` (lower case). Every browser sends its host. */
export function isOwnHost (headers: FastifyRequest['headers'], names: readonly string[]): boolean {
  const host = String(headers[':authority'] ?? headers.host ?? '')
  if (host.startsWith('[')) return true
  const name = host.replace(/:\d*$/, '').toLowerCase()
  return !name.includes('.') || isIP(name) !== 0 || name.endsWith('.localhost') || names.includes(name)
}
