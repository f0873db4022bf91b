import { performance } from 'node:perf_hooks'
import type { FastifyInstance } from 'fastify'
import type { Gateway } from '../core/gateway.js'
import type { Upstream } from '../core/upstream/upstream.js'
import type { HealthRegistry } from './health.js'

/** Shows the health, the running requests and the model names of upstreams as gauges. */
export function followHealth (
  app: FastifyInstance, gateway: Gateway, upstreams: ReadonlyMap<string, Upstream>, registry: HealthRegistry
): void {
  const healths = [...upstreams.values()].map((upstream) => ({ labels: { upstream: upstream.name }, health: registry.of(upstream) }))
  const aliases = [...upstreams.values()].flatMap(({ name, models }) => [...models].map(([model, sentAs]) => ({
    labels: { upstream: name, model, sent_as: sentAs }, value: 1,
  })))
  const endings: Array<() => void> = []
  // Not before all plugins are there: the recorder may be registered after this one.
  app.addHook('onReady', async () => {
    const { recorder } = gateway
    endings.push(
      recorder.gauge(
        'upstream_available', () => healths.map(({ labels, health }) => ({ labels, value: Number(health.isWell(performance.now())) }))
      ),
      recorder.gauge('upstream_active_requests', () => healths.map(({ labels, health }) => ({ labels, value: health.active, of: health }))),
      recorder.gauge('model_aliases', () => aliases))
  })
  app.addHook('onClose', async () => endings.forEach((end) => end()))
}
