import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { joinGateway } from '../core/gateway.js'
import { gatewayPlugin } from '../core/gateway-plugin.js'
import type { GaugeName, GaugeSample } from '../core/recorder.js'
import { identifyFirst } from '../core/call/identify.js'
import { sharedMeters } from './meters.js'
import { checkMetricsOptions, meterRules, type MetricsOptions } from './options.js'
import type { ProcessFamilies } from './process-families.js'
import { joinRegistry } from './registry.js'
import { registryScraper, serveScrapes, storeScraper } from './scrape-route.js'

export type { MetricsOptions } from './options.js'
export type { Cell } from './families.js'
export { countTogether, type Peers } from './peers.js'
export type { Family } from './store.js'
export type { MetricsRegistry } from './registry.js'

async function registerMetrics (app: FastifyInstance, options: MetricsOptions): Promise<void> {
  checkMetricsOptions(options)
  const { registry, cells = {}, hosts = null, path = registry === undefined ? '/metrics' : false } = options
  const rules = meterRules(options)
  const meters = sharedMeters(registry ?? cells, rules)
  if (registry !== undefined) joinRegistry(registry, meters.families)
  const gateway = joinGateway(app)
  gateway.recorder = {
    ...meters.recorder,
    gauge: (name, read) => meters.recorder.gauge(name, () => gateway.isReplaced ? ofReplaced(name, read()) : read()),
  }
  gateway.metrics = meters.shown
  identifyFirst(app, gateway)
  app.addHook('onReady', async () => meters.connect())
  if (meters.process !== null) sampleWhileOpen(app, meters.process)
  if (path === false) return
  serveScrapes(app, path, hosts, registry === undefined ? storeScraper(meters.shown, rules.peers) : registryScraper(registry))
}

/** Often enough that peers lose little of the processor time of a killed process. */
const sampleMs = 1_000

/** Of an app that was replaced only its running requests are still reported. */
function ofReplaced (name: GaugeName, samples: readonly GaugeSample[]): readonly GaugeSample[] {
  return name === 'upstream_active_requests' ? samples.filter(({ value }) => value > 0) : []
}

function sampleWhileOpen (app: FastifyInstance, process: ProcessFamilies): void {
  const timer = setInterval(() => process.sample(), sampleMs).unref()
  app.addHook('onClose', async () => clearInterval(timer))
}

/**
 * Counts what the other plugins report and exposes it to Prometheus and OpenTelemetry (docs/metrics.md): two projections of the same cells.
 * Register it before the other plugins of the gateway.
 */
export const metrics: FastifyPluginAsync<MetricsOptions> = gatewayPlugin('metrics', registerMetrics)
