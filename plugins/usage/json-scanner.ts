import { backslash, closeArray, closeObject, colon, comma, isSpace, openArray, openObject, quote } from '../core/body/bytes.js'
import { CapturedValue } from './captured-value.js'
import { StringEnd } from './string-end.js'
import { keepIn, nodeOfKey, nodeOfName, type SearchNode } from './search-tree.js'
import { ValueEnd } from './value-end.js'

/** Bytes of a key that are kept: every key that is looked for fits, even with all characters escaped. */
const maxKeyBytes = 256

/** States: what the next byte belongs to. */
const inValue = 0
const inKeys = 1
const inKey = 2
const inColon = 3
const inNext = 4
const inRest = 5
const isDone = 6
const isBroken = 7

/**
 * Finds wanted values in one JSON document that arrives in pieces, in constant memory, and as exactly as `JSON.parse`:
 * a key counts only at its own depth, whatever texts or tool arguments contain. The end of a string is found by native
 * search, so that a reply full of base64 costs next to nothing.
 */
export class JsonScanner {
  /** Findings by slot; undefined for none. */
  readonly found: unknown[]
  /** The newest value that was found. */
  readonly captured = new CapturedValue()
  /** True once a wanted value was too long to keep. */
  overflow = false
  /** First byte of the document, undefined before it. */
  first: number | undefined

  #state = inValue
  readonly #root: SearchNode
  /** The open container that is searched, those around it, and whether it is an array. */
  #node: SearchNode
  readonly #nodes: SearchNode[] = []
  #inArray = false
  /** What is looked for in the next value. */
  #target: SearchNode | null
  /** The node of the value that is being kept. */
  #kept: SearchNode | null = null
  readonly #string = new StringEnd()
  readonly #value = new ValueEnd(this.#string)
  /** The start of a key that spans pieces. */
  #key = ''

  constructor (root: SearchNode) {
    this.#root = root
    this.#node = root
    this.#target = root
    this.found = new Array(root.below.length).fill(undefined)
  }

  get done (): boolean {
    return this.#state === isDone
  }

  /** Slot of the wanted text, object or array that is still being read, -1 for none. It may still turn out to be empty. */
  get openSlot (): number {
    return this.#kept === null || this.#value.isScalar || !this.captured.hasBegun ? -1 : this.#kept.slot
  }

  /** Prepares for another document; findings are dropped. */
  reset (): void {
    this.#state = inValue
    this.#nodes.length = 0
    this.#inArray = false
    this.#target = this.#root
    this.#kept = null
    this.#string.reset()
    this.#key = ''
    this.first = undefined
    this.found.fill(undefined)
  }

  /** Reads on. Returns the offset after the document's last byte, or `to` if it continues. */
  push (chunk: Buffer, from: number, to: number): number {
    let at = from
    if (this.#kept !== null) this.captured.start = from
    while (at < to && this.#state < isDone) {
      switch (this.#state) {
        case inValue: at = this.#startValue(chunk, at, to); break
        case inKeys: at = this.#startKey(chunk, at, to); break
        case inKey: at = this.#readKey(chunk, at, to); break
        case inColon: at = this.#readColon(chunk, at); break
        case inNext: at = this.#afterValue(chunk, at); break
        default: at = this.#endValue(chunk, this.#value.goOn(chunk, at, to), to)
      }
    }
    if (this.#kept !== null) this.captured.keep(chunk, to)
    return at
  }

  #startValue (chunk: Buffer, at: number, to: number): number {
    const byte = chunk[at]
    if (isSpace(byte)) return at + 1
    const target = this.#target
    if (target !== null) {
      if (byte === closeArray && this.#inArray) return this.#leave(at + 1)
      this.first ??= byte
      for (const slot of target.below) this.found[slot] = undefined
      if (target.count !== -1) this.found[target.count] = Number(this.found[target.count]) + 1
      if (byte === openObject && target.keys.length > 0) return this.#enter(target, false, at + 1)
      if (byte === openArray && target.each !== null) return this.#enter(target, true, at + 1)
      this.#kept = target.slot === -1 ? null : target
      this.captured.begin(at)
    }
    this.#state = inRest
    return this.#endValue(chunk, this.#value.begin(chunk, at, to), to)
  }

  #enter (target: SearchNode, isArray: boolean, at: number): number {
    this.#nodes.push(this.#node)
    this.#node = target
    this.#inArray = isArray
    this.#target = target.each
    this.#state = isArray ? inValue : inKeys
    if (isArray && target.each !== null && target.each.count !== -1) this.found[target.each.count] ??= 0
    return at
  }

  #leave (at: number): number {
    const left = this.#node
    const parent = this.#nodes.pop()
    if (parent !== undefined) this.#node = parent
    this.#inArray = this.#node.each === left
    this.#state = this.#nodes.length === 0 ? isDone : inNext
    return at
  }

  /** `at`: where the value ends that began here or in an earlier piece, -1 if it continues. */
  #endValue (chunk: Buffer, at: number, to: number): number {
    if (at === -1) return to
    if (this.#kept !== null) {
      keepIn(this.found, this.#kept, this.captured.finish(chunk, at))
      this.overflow ||= this.captured.tooLarge
      this.#kept = null
    }
    this.#state = this.#nodes.length === 0 ? isDone : inNext
    return at
  }

  #afterValue (chunk: Buffer, at: number): number {
    const byte = chunk[at]
    if (byte === comma) {
      this.#state = this.#inArray ? inValue : inKeys
      this.#target = this.#node.each
    } else if (byte === closeObject || byte === closeArray) return this.#leave(at + 1)
    else if (!isSpace(byte)) this.#state = isBroken
    return at + 1
  }

  #startKey (chunk: Buffer, at: number, to: number): number {
    const byte = chunk[at]
    if (byte === quote) return this.#readShortKey(chunk, at + 1, to)
    if (byte === closeObject) return this.#leave(at + 1)
    if (!isSpace(byte)) this.#state = isBroken
    return at + 1
  }

  /** A key without escapes that ends within the piece, as nearly all do. */
  #readShortKey (chunk: Buffer, at: number, to: number): number {
    let end = at
    let byte = chunk[end]
    while (end < to && byte !== quote && byte !== backslash) {
      end += 1
      byte = chunk[end]
    }
    if (end < to && byte === quote) {
      this.#target = nodeOfKey(this.#node, chunk, at, end)
      return this.#endKey(chunk, end + 1, to)
    }
    this.#state = inKey
    return this.#readKey(chunk, at, to)
  }

  #readKey (chunk: Buffer, at: number, to: number): number {
    const end = this.#string.find(chunk, at, to)
    const stop = end === -1 ? to : end - 1
    if (this.#key.length < maxKeyBytes) this.#key += chunk.toString('latin1', at, Math.min(stop, at + maxKeyBytes))
    if (end === -1) return to
    this.#target = nodeOfName(this.#node, this.#key)
    this.#key = ''
    return this.#endKey(chunk, end, to)
  }

  #endKey (chunk: Buffer, at: number, to: number): number {
    this.#state = at < to && chunk[at] === colon ? inValue : inColon
    return this.#state === inValue ? at + 1 : at
  }

  #readColon (chunk: Buffer, at: number): number {
    if (!isSpace(chunk[at])) this.#state = chunk[at] === colon ? inValue : isBroken
    return at + 1
  }
}
