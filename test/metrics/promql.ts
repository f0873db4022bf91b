/** Which names a PromQL expression uses, as far as tests must know; parsing it is promtool's business. */
import { catalogue, prefix, type CatalogueRow } from '../../plugins/metrics/catalogue.js'
import { ProcessFamilies } from '../../plugins/metrics/process-families.js'

/** What a scrape has besides the metrics of the gateway. */
const others = new Set(['up', ...new ProcessFamilies(null).families.map(({ name }) => name)])
const targetLabels = ['job', 'instance']

const rows: ReadonlyMap<string, CatalogueRow> = new Map(Object.entries(catalogue))

/** Words that may be metrics. */
export function namesOf (text: string): string[] {
  return text.match(/[a-zA-Z_:][a-zA-Z0-9_:]*/g) ?? []
}

/** Labels of a metric's samples; null for a metric that does not exist. */
function labelsOf (metric: string, recorded: ReadonlySet<string>): readonly string[] | null {
  if (others.has(metric)) return targetLabels
  if (recorded.has(metric)) return [...String(metric.split(':')[0]).split('_'), ...targetLabels]
  if (!metric.startsWith(prefix)) return null
  const name = metric.slice(prefix.length)
  const own = rows.get(name)
  if (own !== undefined && own.type !== 'histogram') return [...own.labels, ...targetLabels]
  const histogram = rows.get(name.replace(/_(?:bucket|sum|count)$/, ''))
  if (histogram?.type !== 'histogram') return null
  return [...histogram.labels, ...name.endsWith('_bucket') ? ['le'] : [], ...targetLabels]
}

/** Metrics and labels of an expression that neither the catalogue nor a recording rule has. */
export function undeclared (expr: string, recorded: ReadonlySet<string>): string[] {
  const bare = expr.replace(/"[^"]*"/g, '""')
  const metrics = namesOf(bare.replace(/\{[^}]*\}|\[[^\]]*\]|\b(?:by|on|ignoring)\s*\([^)]*\)/g, '')).filter(
    (word) => /^llm_gateway_|:/.test(word) || others.has(word)
  )
  const unknown = metrics.filter((metric) => labelsOf(metric, recorded) === null)
  const all = new Set(metrics.flatMap((metric) => labelsOf(metric, recorded) ?? []))
  for (const [, metric = '', matchers = ''] of bare.matchAll(/([a-zA-Z_:][\w:]*)\{([^}]*)\}/g)) {
    const own = labelsOf(metric, recorded) ?? []
    unknown.push(...[...matchers.matchAll(/(\w+)\s*[!=]/g)].map(([, label = '']) => label).filter((label) => !own.includes(label)))
  }
  for (const [, labels = ''] of bare.matchAll(/\bby\s*\(([^)]*)\)/g)) {
    unknown.push(...namesOf(labels).filter((label) => !all.has(label)))
  }
  return unknown
}
