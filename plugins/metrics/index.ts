import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { checkOptions, OptionError } from '../errors/options.js'
import { joinGateway } from '../request.js'
import { metersOf, sharedMeters } from './meters.js'
import type { MetricsRegistry } from './registry.js'
import { registryScraper, serveScrapes, storeScraper } from './scrape-route.js'

export { catalogue, prefix } from './catalogue.js'
export type { MetricsRegistry } from './registry.js'

export interface MetricsOptions {
  /** A prom-client registry to put the metrics into; never the global one unless you give it. Several apps may share one. */
  registry?: MetricsRegistry
  /** Apps that are given the same object share their cells: an app that takes over from another goes on counting. */
  cells?: object
  /** Where the text is served, or false for nowhere. Default: `/metrics`; with a `registry` nowhere, its owner serves it. */
  path?: string | false
  /** The model names that may be label values. Default: learnt from successful replies, up to `maxModels`. */
  models?: readonly string[]
  /** Default 100. */
  maxModels?: number
  /** Most label sets of one metric; all others share one whose labels are `other`. Default 1000. */
  maxCells?: number
}

const metricsPlugin: FastifyPluginAsync<MetricsOptions> = async (app, options) => {
  checkMetricsOptions(options)
  const { registry, cells = {}, path = registry === undefined ? '/metrics' : false, models = null, maxModels = 100, maxCells = 1_000 } = options
  const rules = { models, maxModels, maxCells }
  const meters = registry === undefined ? sharedMeters(cells, rules, () => {}) : metersOf(registry, rules, () => {})
  joinGateway(app).recorder = meters.recorder
  if (path !== false) serveScrapes(app, path, registry === undefined ? storeScraper(meters.store.families) : registryScraper(registry))
}

function checkMetricsOptions (options: MetricsOptions): void {
  const { registry, cells, path, models, ...numbers } = options
  checkOptions('metrics', { registry, cells, ...numbers }, {
    registry: 'an object', cells: 'an object', maxModels: 'a whole number of at least 1', maxCells: 'a whole number of at least 1',
  })
  if (path !== undefined && path !== false && !/^\/./.test(String(path))) throw new OptionError('metrics.path', 'must be false or begin with a slash')
  if (models !== undefined && !isListOfStrings(models)) throw new OptionError('metrics.models', 'must be a list of strings')
}

function isListOfStrings (value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

export const metrics = fp(metricsPlugin, { fastify: '5.x', name: 'llm-gateway-metrics' })
export default metrics
