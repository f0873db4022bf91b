import type { MeterProvider } from '@opentelemetry/api'
import { checkMethods, checkOptions, checkTexts, checkWholeName, OptionError } from '../core/config/options.js'
import { checkHosts } from '../core/door/own-host.js'
import { checkKeyLabels } from './key-labels.js'
import type { MeterRules } from './meters.js'
import type { Semconv } from './otel-genai.js'
import { peersOf } from './peers.js'
import type { MetricsRegistry } from './registry.js'

export interface MetricsOptions {
  /**
   * A prom-client registry to put the metrics into; the global one only if you give it. Several apps may share one.
   * @defaultValue one of its own
   */
  registry?: MetricsRegistry
  /**
   * Apps that are given the same object share their cells: an app that replaces another one continues its counts.
   * @defaultValue its own
   */
  cells?: object
  /**
   * Add metrics of the process itself (`process_*`, `nodejs_*`), for a host that has none of its own.
   * @defaultValue false
   */
  process?: boolean
  /**
   * Path at which the text is served; `false` for none.
   * @defaultValue `/metrics`; with a `registry` nowhere, its owner serves it
   */
  path?: string | false
  /**
   * Host names under which it may be scraped, besides addresses and names without a dot.
   * @defaultValue any
   */
  hosts?: readonly string[]
  /**
   * The model names that may be label values.
   * @defaultValue learnt from successful replies, up to `maxModels`
   */
  models?: readonly string[]
  /**
   * Maximum number of model names that are learnt; others are `other`.
   * @defaultValue 100
   */
  maxModels?: number
  /**
   * Names of labels of keys and groups, such as `team`, that requests, tokens and costs are counted by as well. At most four.
   * @defaultValue none
   */
  labels?: readonly string[]
  /**
   * Maximum number of values of one such label that are shown; others are `other`.
   * @defaultValue 100
   */
  maxLabelValues?: number
  /**
   * Maximum number of label sets of one metric; all further ones share one whose labels are `other`.
   * @defaultValue 1000
   */
  maxCells?: number
  /**
   * Expose the metrics to OpenTelemetry, once an SDK is registered.
   * @defaultValue true
   */
  openTelemetry?: boolean
  /**
   * The provider of OpenTelemetry meters.
   * @defaultValue the one that is registered with the API, whenever that happens
   */
  meterProvider?: MeterProvider
  /**
   * Which of OpenTelemetry's GenAI metrics are added: `legacy`, such as `gen_ai.client.token.usage`; `next`, those of the conventions' own
   * release 0.1.0, `gen_ai.client.inference.*` and `gen_ai.client.embeddings.*`; `both`; `off`.
   * @defaultValue `legacy`
   */
  semconv?: Semconv
}

const semconvs: readonly unknown[] = ['legacy', 'next', 'both', 'off'] satisfies Semconv[]

/** Throws `LLM_GATEWAY_OPTION` naming the wrong option. */
export function checkMetricsOptions (options: MetricsOptions): void {
  const { path, hosts, models, labels, semconv, ...others } = options
  checkOptions('metrics', others, {
    'an object': ['registry', 'cells', 'meterProvider'],
    'a boolean': ['process', 'openTelemetry'],
    'a whole number of at least 1': ['maxModels', 'maxLabelValues', 'maxCells'],
  })
  checkMethods('metrics.meterProvider', others.meterProvider, ['getMeter'])
  checkMethods('metrics.registry', others.registry, ['getSingleMetric', 'registerMetric', 'metrics'])
  if (path !== undefined && path !== false && (typeof path !== 'string' || !/^\/[^?#%]+$/.test(path))) {
    throw new OptionError('metrics.path', 'must be false, or begin with a slash and go on, without ?, # and %')
  }
  checkHosts('metrics.hosts', hosts)
  checkTexts('metrics.models', models)
  models?.forEach((name, index) => checkWholeName(`metrics.models[${index}]`, name))
  checkKeyLabels('metrics.labels', labels)
  if (semconv !== undefined && !semconvs.includes(semconv)) {
    throw new OptionError('metrics.semconv', `must be one of ${semconvs.join(', ')}`)
  }
}

export function meterRules (options: MetricsOptions): MeterRules {
  const { models = null, maxModels = 100, labels = [], maxLabelValues = 100, maxCells = 1_000, cells = {}, process = false } = options
  const { openTelemetry = true, meterProvider = null, semconv = 'legacy' } = options
  const otel = openTelemetry ? { meterProvider, semconv } : null
  return { models, maxModels, labels, maxLabelValues, maxCells, peers: peersOf(cells), process, otel }
}
