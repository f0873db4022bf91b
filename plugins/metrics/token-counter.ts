import { leafTokens, leaves } from '../core/call/measures.js'
import type { TokenUsage } from '../core/types.js'
import { isAmount, type FamilyRules, type CellListener, type ValueCell, type ValueListener } from './families.js'
import { LabelTree, type Series } from './label-tree.js'

/**
 * `tokens_total`. One walk finds the cells of all leaves at once, because a reply reports them together. `maxCells` limits the sets of
 * protocol, group and model; those beyond it keep their direction and type, so that every sum stays exact.
 */
export class TokenCounter {
  readonly #tree: LabelTree<readonly ValueCell[]>
  readonly #counted: CellListener
  #listener: ValueListener | null = null

  constructor ({ row, maxCells, overflowed, counted }: FamilyRules) {
    this.#counted = counted
    this.#tree = new LabelTree(row.labels.filter((name) => name !== 'direction' && name !== 'type'), maxCells, leafCells, overflowed)
  }

  /** `labels`: values of the request's key that the metrics show. */
  add (usage: TokenUsage, protocol: string, group: string, model: string, labels: readonly string[]): void {
    const amounts = leafTokens(usage)
    let at = 0
    for (const cell of this.#tree.find([protocol, group, model], labels)) {
      const amount = Number(amounts[at++])
      if (!isAmount(amount) || amount === 0) continue
      cell.value += amount
      if (this.#counted !== null) this.#counted(cell)
      if (this.#listener !== null) this.#listener(amount, cell.labels)
    }
  }

  listen (listener: ValueListener): void {
    this.#listener = listener
  }

  /** Leaves that never occurred make no series. */
  read (): readonly ValueCell[] {
    return this.#tree.cells.flatMap((cells) => cells.filter(({ value }) => value > 0))
  }
}

/** In the order of `leaves`. */
function leafCells ({ labels, text }: Series): readonly ValueCell[] {
  return leaves.map(({ type, direction }) => ({
    labels: { ...labels, direction, type },
    text: `${text},direction="${direction}",type="${type}"`,
    value: 0,
  }))
}
