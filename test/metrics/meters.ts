import { renderText, plainText } from '../../plugins/metrics/exposition.js'
import { openMeters, type Meters, type MeterRules } from '../../plugins/metrics/meters.js'

export function newMeters (rules: Partial<MeterRules> = {}): Meters {
  return openMeters({
    models: null, maxModels: 100, labels: [], maxLabelValues: 100, maxCells: 1_000, peers: null, process: false, otel: null, ...rules,
  })
}

/** The samples of a text exposition: `name{labels}` to value. */
export function samplesOf (text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(lines.map((line) => {
    const space = line.lastIndexOf(' ')
    return [line.slice(0, space), Number(line.slice(space + 1))]
  }))
}

/**
 * All samples but buckets, and but those that every process has from its start; rounded to nanoseconds, as clock differences are not exact.
 */
export async function valuesOf (meters: Meters): Promise<Record<string, number>> {
  const samples = samplesOf(await renderText(meters.store.families, plainText))
  const kept = [...samples].filter(([name, value]) => !/_bucket|_series|_build_info/.test(name) && !(/_total\b/.test(name) && value === 0))
  return Object.fromEntries(kept.map(([name, value]) => [name, Math.round(value * 1e9) / 1e9]))
}

/** Adds up all samples of a metric. */
export function sumOf (samples: ReadonlyMap<string, number>, name: string): number {
  let sum = 0
  for (const [sample, value] of samples) if (sample === name || sample.startsWith(`${name}{`)) sum += value
  return sum
}
