/** Secrets in what an upstream says: as they are, and as JSON and addresses may write them. */
import { lineFeed } from '../core/body/bytes.js'

/** JSON within JSON escapes an escape again. */
const maxEscapes = 3
/** The longest way to write a letter: `\\\u002d`. */
const bytesOfLetter = maxEscapes + 5

/** What finds any of the secrets in a text of one letter a byte. */
export function patternOf (secrets: readonly string[]): RegExp {
  return new RegExp(secrets.map((secret) => [...secret].map(anyWay).join('')).join('|'), 'g')
}

/**
 * Serializers of JSON escape more than they must: slashes, and what HTML could take for its own, such as the `=` at the end of a key.
 * What is percent-encoded may be any letter.
 */
function anyWay (letter: string): string {
  const code = letter.charCodeAt(0).toString(16).padStart(2, '0').replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`)
  const plain = /\w/.test(letter) ? letter : `\\\\{0,${maxEscapes}}\\${letter}`
  return `(?:${plain}|\\\\{1,${maxEscapes}}u00${code}|%${code})`
}

/** The same bytes, as many, without the secrets. */
export function masked (bytes: Buffer, pattern: RegExp): Buffer {
  const text = bytes.toString('latin1')
  return text.search(pattern) === -1 ? bytes : Buffer.from(text.replace(pattern, (found) => '*'.repeat(found.length)), 'latin1')
}

/** Masks bytes that come in pieces. The last ones wait, as a secret may begin in them; none goes over the end of a line. */
export class PieceMask {
  readonly #pattern: RegExp
  readonly #waitingBytes: number
  #waiting: Buffer = Buffer.alloc(0)

  constructor (secrets: readonly string[]) {
    this.#pattern = patternOf(secrets)
    this.#waitingBytes = bytesOfLetter * Math.max(...secrets.map(({ length }) => length))
  }

  push (piece: Buffer): Buffer {
    const bytes = masked(Buffer.concat([this.#waiting, piece]), this.#pattern)
    const at = Math.max(0, bytes.length - this.#waitingBytes, bytes.lastIndexOf(lineFeed) + 1)
    this.#waiting = bytes.subarray(at)
    return bytes.subarray(0, at)
  }

  /** Once; nothing waits after it. */
  end (): Buffer {
    const rest = this.#waiting
    this.#waiting = Buffer.alloc(0)
    return rest
  }
}
