import type { Recorder } from '../core/recorder.js'
import { createRecorder, type LabelNames } from './create-recorder.js'
import { KeyLabels } from './key-labels.js'
import { ModelNames } from './model-names.js'
import { OtelProjection, type OtelRules } from './otel.js'
import { withPeers, type Peers } from './peers.js'
import { ProcessFamilies } from './process-families.js'
import { MetricStore, type Family } from './store.js'

export interface MeterRules {
  readonly models: readonly string[] | null
  readonly maxModels: number
  /** Labels of keys that the metrics show. */
  readonly labels: readonly string[]
  readonly maxLabelValues: number
  readonly maxCells: number
  readonly peers: Peers | null
  /** Whether the process metrics are added (`process_*`, `nodejs_*`). */
  readonly process: boolean
  /** Null: nothing goes to OpenTelemetry. */
  readonly otel: OtelRules | null
}

/** A recorder and the cells that it writes to. */
export interface Meters {
  readonly store: MetricStore
  /** What this process counts. */
  readonly families: readonly Family[]
  /** Including what its peers count: the same array for each app that counts here. */
  readonly shown: readonly Family[]
  readonly recorder: Recorder
  readonly process: ProcessFamilies | null
  /** Exposes the cells to OpenTelemetry, if an SDK is registered and wanted. */
  readonly connect: () => void
}

const byOwner = new WeakMap<object, Meters>()

export function openMeters ({ models, maxModels, labels, maxLabelValues, maxCells, peers, process, otel }: MeterRules): Meters {
  const counted = peers?.counted ?? null
  const store = new MetricStore({ maxCells, labels, counted })
  const own = process ? new ProcessFamilies(counted) : null
  const names: LabelNames = {
    models: new ModelNames({ listed: models, maxModels, overflowed: store.overflowed }),
    keys: new KeyLabels({ names: labels, maxValues: maxLabelValues, overflowed: store.overflowed }),
  }
  const projection = otel === null ? null : new OtelProjection(store.families, otel)
  const recorder = createRecorder(store, names, (llm, model) => projection?.settled(llm, model))
  const families = [...store.families, ...own?.families ?? []]
  return {
    store,
    families,
    shown: peers === null ? families : withPeers(families, peers),
    process: own,
    recorder: projection?.watch(recorder) ?? recorder,
    connect: () => projection?.connect(),
  }
}

/**
 * The meters of an object, such as a registry: all apps and mounts that are given the same object share their cells, by the rules of the
 * first. Their counts add up.
 */
export function sharedMeters (owner: object, rules: MeterRules): Meters {
  const meters = byOwner.get(owner) ?? openMeters(rules)
  byOwner.set(owner, meters)
  return meters
}
