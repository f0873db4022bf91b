import type { FastifyInstance } from 'fastify'
import { gatewayOf } from '../../plugins/core/gateway.js'

/** Requests that were refused, by reason. */
export function shed (app: FastifyInstance): Record<string, number> {
  const family = gatewayOf(app).metrics.find(({ name }) => name.endsWith('shed_total'))
  const counts = (family?.read() ?? []).map((reading) => [
    String(reading.labels['reason']), 'value' in reading ? reading.value : NaN,
  ] as const)
  return Object.fromEntries(counts.filter(([, count]) => count !== 0))
}
