/**
 * Which model names may become label values: they come from callers, and a series lives as long as the process. Cloud resource names and
 * names of tuned models have about 100 letters.
 */
const plausible = /^[A-Za-z0-9._:/@-]{1,128}$/

interface ModelNameRules {
  /** The only names that are shown. Null: names are learnt. */
  readonly listed: readonly string[] | null
  /** Maximum number of names that are learnt. */
  readonly maxModels: number
  readonly overflowed: (label: string) => void
}

/**
 * The label for a model name. A listed name is shown as it is. Without a list, a name is learnt when a provider answered it with success,
 * up to `maxModels` names of a plain alphabet: so a scanner, or a caller who invents names, adds nothing. All other names are `other`, a
 * missing name is `none`.
 */
export class ModelNames {
  /** Maps each name to the one string object that all later lookups use: they then compare by identity. */
  readonly #known: Map<string, string>
  readonly #max: number
  readonly #overflowed: (label: string) => void

  constructor ({ listed, maxModels, overflowed }: ModelNameRules) {
    this.#known = new Map(listed?.map((name) => [name, name]))
    this.#max = listed === null ? maxModels : 0
    this.#overflowed = overflowed
  }

  /** `succeeded`: a provider answered a request for this name with a 2xx status. */
  label (name: string | null, succeeded: boolean): string {
    if (name === null || name === '') return 'none'
    const known = this.#known.get(name)
    if (known !== undefined) return known
    if (!succeeded) return 'other'
    if (this.#known.size < this.#max && plausible.test(name)) {
      this.#known.set(name, name)
      return name
    }
    this.#overflowed('model')
    return 'other'
  }
}
