/** Finds secrets in what an upstream says: literal, or as JSON and URLs may escape them. */
import { lineFeed } from '../core/body/bytes.js'

/** Levels of escaping: JSON inside of JSON escapes the escapes again. */
const maxEscapes = 3
/** The longest way to write a letter: `\\\u002d`. */
const bytesOfLetter = maxEscapes + 5

/** Matches any of the secrets in a text with one character per byte. */
export function patternOf (secrets: readonly string[]): RegExp {
  return new RegExp(secrets.map((secret) => [...secret].map(anyWay).join('')).join('|'), 'g')
}

/**
 * One character in every form. JSON serializers escape more than they must: slashes, and what HTML could interpret, such as the `=` at the
 * end of a key. Any character may be percent-encoded.
 */
function anyWay (letter: string): string {
  const code = letter.charCodeAt(0).toString(16).replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`)
  const plain = /\w/.test(letter) ? letter : `\\\\{0,${maxEscapes}}\\${letter}`
  return `(?:${plain}|\\\\{1,${maxEscapes}}u00${code}|%${code})`
}

/** The bytes with each secret replaced by as many asterisks. */
function masked (bytes: Buffer, pattern: RegExp): Buffer {
  const text = bytes.toString('latin1')
  return text.search(pattern) === -1 ? bytes : Buffer.from(text.replace(pattern, (found) => '*'.repeat(found.length)), 'latin1')
}

/** Masks bytes that come in pieces. The last bytes are held back, because a secret may begin there; no secret spans lines. */
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
