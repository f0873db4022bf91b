import type { FastifyPluginAsync, FastifyPluginOptions } from 'fastify'
import fp from 'fastify-plugin'

/** A plugin of the gateway: its hooks are those of the scope that registers it. `behind`: the plugins that have to be there. */
export function gatewayPlugin<Options extends FastifyPluginOptions> (
  name: string, register: FastifyPluginAsync<Options>, behind: readonly string[] = []
): FastifyPluginAsync<Options> {
  return fp(register, { fastify: '5.x', name: fullName(name), dependencies: behind.map(fullName) })
}

function fullName (name: string): string {
  return `llm-gateway-${name}`
}
