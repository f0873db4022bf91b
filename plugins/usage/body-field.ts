import { JsonScanner } from './json-scanner.js'
import { compileSearch } from './search-tree.js'

/** A change of a body: `text` replaces the bytes from `start` to `end`. */
export interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** A field of a body: its value, undefined for none, and where that is. */
export interface Field {
  readonly value: unknown
  readonly start: number
  readonly end: number
}

export function fieldFound ({ captured: { origin, end }, found: [value] }: JsonScanner): Field {
  return { value, start: origin, end }
}

/** A field of a document that has it. */
export function fieldIn (body: Buffer, name: string): Field {
  const scanner = new JsonScanner(compileSearch([name]))
  scanner.push(body, 0, body.length)
  return fieldFound(scanner)
}
