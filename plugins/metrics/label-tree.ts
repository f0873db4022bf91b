/** A series without its value. Made once, when the series is first seen. */
export interface Series {
  readonly labels: Readonly<Record<string, string>>
  /** `name="value",...` as in the text format, without braces. */
  readonly text: string
}

const none: readonly string[] = []

interface Node<C> {
  readonly children: Map<string, Node<C>>
  cell: C | null
}

/** Result of a walk. */
interface Found<C> {
  readonly values: readonly string[]
  readonly more: readonly string[]
  readonly cell: C
}

/** Called with the label whose value was new, and its label set. */
type Overflowed = (label: string, values: readonly string[]) => void

/** Number of recent label sets to compare with: where requests alternate between upstreams or models, few are like the one just before. */
const maxFound = 4

/**
 * The cells of one metric, found by one Map per label: keys are never joined from label values, so that two label sets cannot collide. At
 * most `maxCells` are made; all further label sets share one cell whose labels are all `other`, so that totals stay exact, and `overflowed`
 * is called with the first label whose value was new.
 */
export class LabelTree<C> {
  cells: C[] = []
  #root: Node<C> = newNode()
  /** Most requests have the labels of a recent one; its cell is then found without a walk. */
  #found: Array<Found<C>> = []
  #oldest = 0
  readonly #names: readonly string[]
  #maxCells: number
  readonly #make: (series: Series) => C
  readonly #overflowed: Overflowed

  constructor (names: readonly string[], maxCells: number, make: (series: Series) => C, overflowed: Overflowed) {
    this.#names = names
    this.#maxCells = maxCells
    this.#make = make
    this.#overflowed = overflowed
  }

  /** `more`: the values of its last labels, if the caller has them in an array of their own. */
  find (values: readonly string[], more = none): C {
    for (const found of this.#found) {
      if (areSame(values, found.values) && areSame(more, found.more)) return found.cell
    }
    return this.#walk(values, more)
  }

  /** Adds a cell that does not count towards `maxCells`. False if it existed. */
  reserve (values: readonly string[]): boolean {
    const before = this.cells.length
    this.#insert(values)
    if (this.cells.length === before) return false
    this.#maxCells += 1
    return true
  }

  #walk (values: readonly string[], more: readonly string[]): C {
    const all = more.length === 0 ? values : [...values, ...more]
    let node = this.#root
    let depth = 0
    for (const value of all) {
      const next = node.children.get(value)
      if (next === undefined) return this.#open(all, depth)
      node = next
      depth += 1
    }
    if (node.cell === null) return this.#open(all, depth)
    this.#found[this.#oldest] = { values, more, cell: node.cell }
    this.#oldest = (this.#oldest + 1) % maxFound
    return node.cell
  }

  clear (): void {
    this.cells = []
    this.#root = newNode()
    this.#found = []
    this.#oldest = 0
  }

  #open (values: readonly string[], depth: number): C {
    if (this.cells.length < this.#maxCells) return this.#insert(values)
    this.#overflowed(String(this.#names[depth]), values)
    return this.#insert(values.map(() => 'other'))
  }

  #insert (values: readonly string[]): C {
    let node = this.#root
    for (const value of values) {
      const next = node.children.get(value) ?? newNode()
      node.children.set(value, next)
      node = next
    }
    if (node.cell === null) this.cells.push(node.cell = this.#make(seriesOf(this.#names, values)))
    return node.cell
  }
}

function areSame (values: readonly string[], others: readonly string[]): boolean {
  for (let at = 0; at < values.length; at += 1) {
    if (values[at] !== others[at]) return false
  }
  return true
}

function newNode<C> (): Node<C> {
  return { children: new Map(), cell: null }
}

function seriesOf (names: readonly string[], values: readonly string[]): Series {
  const pairs = values.map((value, index) => [String(names[index]), escapeValue(value)] as const)
  return { labels: Object.fromEntries(pairs), text: pairs.map(([name, value]) => `${name}="${value}"`).join(',') }
}

/**
 * Replaces characters that could break a text format, or collide in a reader that joins label values by commas (prom-client 15 does), by
 * `%` and four hex digits. Two different values never become the same.
 */
export function escapeValue (value: string): string {
  return value.replace(/[%,"\\\p{Cc}\p{Cs}]/gu, (character) => `%${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
