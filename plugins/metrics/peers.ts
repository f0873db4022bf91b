import { combine, type Aggregator } from './catalogue.js'
import type { Cell } from './families.js'
import type { Family } from './store.js'

/** The other processes of one gateway, as one of them sees them. */
export interface Peers {
  /** Called when a cell of a counter or histogram has changed. */
  readonly counted: (name: string, cell: Cell) => void
  /** Called with the families of this process. */
  readonly join: (families: readonly Family[]) => void
  /** Resolves once `cells` returns what the others have now, and what ended ones had counted. */
  readonly refresh: () => Promise<void>
  /** `bounds`: of a histogram's buckets, without the last; empty for any other family. */
  readonly cells: (name: string, bounds: readonly number[]) => readonly Cell[]
}

const byCells = new WeakMap<object, Peers>()

/** Makes apps whose `metrics.cells` is this object count together with other processes. To be called before the first of them is made. */
export function countTogether (cells: object, peers: Peers): void {
  byCells.set(cells, peers)
}

export function peersOf (cells: object): Peers | null {
  return byCells.get(cells) ?? null
}

/** Families that are read as the sum of all processes. */
export function withPeers (families: readonly Family[], peers: Peers): readonly Family[] {
  peers.join(families)
  return families.map((family) => {
    const read = (): Cell[] => merged([...family.read(), ...peers.cells(family.name, family.row.buckets)], family.row.aggregator)
    const isHistogram = 'listen' in family && family.row.type === 'histogram'
    if (isHistogram) return { ...family, read: () => read().filter((cell) => 'buckets' in cell) }
    return { ...family, read: () => read().filter((cell) => 'value' in cell) }
  })
}

/** One cell for each label set. */
function merged (cells: readonly Cell[], aggregator: Aggregator): Cell[] {
  const sums = new Map<string, Cell>()
  for (const cell of cells) {
    const sum = sums.get(cell.text)
    if (sum === undefined) sums.set(cell.text, copyOf(cell))
    else join(sum, cell, aggregator)
  }
  return [...sums.values()]
}

function copyOf (cell: Cell): Cell {
  return 'buckets' in cell ? { ...cell, buckets: cell.buckets.map((bucket) => ({ ...bucket })) } : { ...cell }
}

function join (into: Cell, from: Cell, aggregator: Aggregator): void {
  if ('value' in into && 'value' in from) into.value = combine[aggregator](into.value, from.value)
  if (!('buckets' in into && 'buckets' in from)) return
  into.sum += from.sum
  into.count += from.count
  for (const [index, bucket] of into.buckets.entries()) bucket.count += Number(from.buckets[index]?.count)
}
