import { standsAt } from '../core/body/bytes.js'
import { parseJson } from '../core/body/parse-json.js'

/**
 * The values that a scanner looks for, as a tree of the keys that lead to them. Each value has a slot:
 * its index in the scanner's list of findings.
 */
export interface SearchNode {
  /** Slot of this value, -1 for none. */
  slot: number
  /** The finding is a list of all such values, from every element of the array around them. */
  gathers: boolean
  /** Slot that counts such elements of an array, -1 for none. */
  count: number
  /** Slots that a new value for the same key replaces, as in `JSON.parse`. */
  readonly below: number[]
  readonly keys: { readonly name: string, readonly node: SearchNode }[]
  /** What is looked for in each element of this array. */
  each: SearchNode | null
}

function emptyNode (): SearchNode {
  return { slot: -1, gathers: false, count: -1, below: [], keys: [], each: null }
}

function nodeAdded (node: SearchNode, name: string): SearchNode {
  const known = node.keys.find((key) => key.name === name)
  if (known !== undefined) return known.node
  const made = emptyNode()
  node.keys.push({ name, node: made })
  return made
}

function addPath (root: SearchNode, path: string, slot: number): void {
  root.below.push(slot)
  let node = root
  // Elements of an array do not replace each other: only the array as a whole can be replaced.
  let replaceable = true
  const gathers = path.endsWith('[]')
  for (const key of (gathers ? path.slice(0, -2) : path).split('.')) {
    if (key === '#') {
      elementOf(node).count = slot
      return
    }
    replaceable &&= key !== '*'
    node = key === '*' ? elementOf(node) : nodeAdded(node, key)
    if (replaceable) node.below.push(slot)
  }
  node.slot = slot
  node.gathers = gathers
}

function elementOf (node: SearchNode): SearchNode {
  node.each ??= emptyNode()
  return node.each
}

/**
 * Compiles paths such as `response.usage`, `choices.*.finish_reason` (the last one's), `output.*.type[]` (a list of all) or
 * `choices.#` (a number of elements). The position of a path in the list is its slot. No path leads through the value of another.
 */
export function compileSearch (paths: readonly string[]): SearchNode {
  const root = emptyNode()
  for (const [slot, path] of paths.entries()) addPath(root, path, slot)
  return root
}

/** The node for the key in `chunk`, without its quotes and without escapes. */
export function nodeOfKey (node: SearchNode, chunk: Buffer, from: number, to: number): SearchNode | null {
  for (const key of node.keys) {
    if (key.name.length === to - from && standsAt(key.name, chunk, from)) return key.node
  }
  return null
}

/** The same for a key as it is written in JSON, escapes and all. */
export function nodeOfName (node: SearchNode, written: string): SearchNode | null {
  const name = written.includes('\\') ? parseJson(`"${written}"`) : written
  return node.keys.find((key) => key.name === name)?.node ?? null
}

/** The most values that are gathered for one slot; real replies have fewer. */
const maxGathered = 1_000

/** Stores a value among the findings. */
export function keepIn (found: unknown[], { slot, gathers }: SearchNode, value: unknown): void {
  const list: unknown = found[slot]
  if (!gathers) found[slot] = value
  else if (!Array.isArray(list)) found[slot] = [value]
  else if (list.length < maxGathered) list.push(value)
}
