import type { Recorder } from '../recorder.js'
import { createRecorder, type SettledListener } from './create-recorder.js'
import { ModelNames } from './model-names.js'
import { joinRegistry, type MetricsRegistry } from './registry.js'
import { MetricStore } from './store.js'

export interface MeterRules {
  readonly models: readonly string[] | null
  readonly maxModels: number
  readonly maxCells: number
}

/** A recorder and the cells that it writes to. */
export interface Meters {
  readonly store: MetricStore
  readonly recorder: Recorder
}

const byOwner = new WeakMap<object, Meters>()

export function openMeters ({ models, maxModels, maxCells }: MeterRules, listener: SettledListener): Meters {
  const store = new MetricStore(maxCells)
  const names = new ModelNames({ listed: models, maxModels, overflowed: store.overflowed })
  return { store, recorder: createRecorder(store, names, listener) }
}

/** The meters of an object's owner: all apps that are given the same object share them, with the rules of the first. */
export function sharedMeters (owner: object, rules: MeterRules, listener: SettledListener): Meters {
  const meters = byOwner.get(owner) ?? openMeters(rules, listener)
  byOwner.set(owner, meters)
  return meters
}

/**
 * The meters behind a registry. All mounts and apps that share the registry share the cells too, with the rules of the
 * first: their counts add up, and no name is registered twice.
 */
export function metersOf (registry: MetricsRegistry, rules: MeterRules, listener: SettledListener): Meters {
  const meters = sharedMeters(registry, rules, listener)
  joinRegistry(registry, meters.store.families)
  return meters
}
