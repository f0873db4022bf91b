/** Labels of keys and groups that the operator wants in the metrics: `metrics.labels`. */
import type { ModelCall } from '../core/call/model-call.js'
import { checkTexts, OptionError } from '../core/config/options.js'
import type { Group, Labels } from '../core/types.js'
import { catalogue } from './catalogue.js'

interface KeyLabelRules {
  readonly names: readonly string[]
  /** Maximum number of values of one label that are shown. */
  readonly maxValues: number
  readonly overflowed: (label: string) => void
}

/** Labels of the metrics themselves, and those that the text formats add to histograms and summaries. */
const taken: ReadonlySet<string> = new Set([
  ...Object.values(catalogue).flatMap(({ labels }): readonly string[] => labels), 'le', 'quantile',
])

/** Names that both text formats and OpenTelemetry accept; those that begin with two underscores belong to Prometheus. */
const plain = /^(?!__)[A-Za-z_][A-Za-z0-9_]{0,63}$/

/** Each name multiplies the series by up to `maxLabelValues`. */
const maxNames = 4

/** Throws `LLM_GATEWAY_OPTION` naming the wrong element. */
export function checkKeyLabels (option: string, names: readonly string[] | undefined): void {
  checkTexts(option, names)
  if (names === undefined) return
  if (names.length > maxNames) throw new OptionError(option, `must be at most ${maxNames} labels`)
  for (const [at, name] of names.entries()) {
    const place = `${option}[${at}]`
    if (!plain.test(name)) {
      throw new OptionError(place, 'must be up to 64 letters, digits and underscores, and begin with no digit and no two underscores')
    }
    if (taken.has(name)) throw new OptionError(place, 'is a label that the metrics have already')
    if (names.indexOf(name) < at) throw new OptionError(place, 'is there twice')
  }
}

/** Own properties only: a name may be one that every object has, such as `constructor`. */
function ownLabel (labels: Labels | undefined, name: string): string | undefined {
  return labels !== undefined && Object.hasOwn(labels, name) ? labels[name] : undefined
}

/**
 * The values of a request's labels, in the order of their names: from its key, else from its group, else `none`. Never from the caller's
 * own header: a series lives as long as the process, and callers must not create any.
 */
export class KeyLabels {
  readonly #names: readonly string[]
  /** For each name the values that are shown, each as the one string object that all later lookups use. */
  readonly #known: ReadonlyArray<Map<string, string>>
  /** Values for keys without labels of their own. */
  readonly #byGroup = new WeakMap<Group, readonly string[]>()
  readonly #maxValues: number
  readonly #overflowed: (label: string) => void

  constructor ({ names, maxValues, overflowed }: KeyLabelRules) {
    this.#names = names
    this.#known = names.map(() => new Map([['none', 'none'], ['other', 'other']]))
    this.#maxValues = maxValues + 2
    this.#overflowed = overflowed
  }

  of ({ auth: { key, group } }: ModelCall): readonly string[] {
    if (this.#names.length === 0) return this.#names
    if (group === null || key?.labels !== undefined) return this.#read(key?.labels, group?.labels)
    const known = this.#byGroup.get(group)
    if (known !== undefined) return known
    const values = this.#read(undefined, group.labels)
    // Not cached: each use of a value beyond the maximum is counted.
    if (!values.includes('other')) this.#byGroup.set(group, values)
    return values
  }

  #read (ofKey: Labels | undefined, ofGroup: Labels | undefined): readonly string[] {
    return this.#known.map((known, at) => {
      const name = String(this.#names[at])
      return this.#shown(known, name, ownLabel(ofKey, name) ?? ownLabel(ofGroup, name) ?? 'none')
    })
  }

  #shown (known: Map<string, string>, name: string, value: string): string {
    const shown = known.get(value)
    if (shown !== undefined) return shown
    if (known.size < this.#maxValues) {
      known.set(value, value)
      return value
    }
    this.#overflowed(name)
    return 'other'
  }
}
