/** Finds secrets in what an upstream says: literal, in hex or base64, or as JSON, URLs and HTML may escape them. */
import { lineFeed } from '../core/body/bytes.js'
import { unescaped } from './unescaped.js'
import { minSecretLength } from './upstream-secrets.js'

/** The longest way to write a character: `\\\u0026amp;#x00002d;`. */
const bytesOfLetter = 21

/**
 * A secret as it may be written besides its escapes, with one character per byte. In base64 it may stand behind zero, one or two bytes of a
 * group of three. What is an escape in the secret itself is undone where the secret was escaped.
 */
function formsOf (secret: string): string[] {
  const bytes = Buffer.from(secret)
  const hex = bytes.toString('hex')
  const packed = [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64url')
    // Characters that hold bits of what stands around it are left out.
    return text.slice(before === 0 ? 0 : before + 1, (before + bytes.length) % 3 === 0 ? undefined : -1)
  })
  const asciiJson = secret.replace(/[^\0-\xff]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)
  const plain = [asciiJson, bytes.toString('latin1')]
  const undone = plain.map((text) => unescaped(Buffer.from(text, 'latin1')).toString('latin1'))
  const packedPlainly = packed.map((text) => text.replaceAll('-', '+').replaceAll('_', '/'))
  return [...plain, ...undone, hex, hex.toUpperCase(), ...packed, ...packedPlainly].filter(({ length }) => length >= minSecretLength)
}

/** Of bytes as they come, and without their escapes. */
export class SecretSearch {
  /** More than any form of any of the secrets takes. */
  readonly maxBytes: number
  readonly #forms: readonly string[]

  constructor (secrets: readonly string[]) {
    this.#forms = [...new Set(secrets.flatMap(formsOf))]
    this.maxBytes = bytesOfLetter * Math.max(...secrets.map((secret) => Buffer.byteLength(secret)))
  }

  isIn (bytes: Buffer): boolean {
    return this.#isPlainlyIn(bytes) || this.#isPlainlyIn(unescaped(bytes))
  }

  /** The bytes with each secret replaced by as many asterisks. */
  masked (bytes: Buffer): Buffer {
    if (!this.isIn(bytes)) return bytes
    const out = Buffer.from(bytes)
    const starts: number[] = []
    const text = bytes.toString('latin1')
    const plain = unescaped(bytes, starts).toString('latin1')
    for (const form of this.#forms) {
      forEach(text, form, (from, to) => out.fill('*', from, to))
      forEach(plain, form, (from, to) => out.fill('*', starts[from], starts[to]))
    }
    return out
  }

  #isPlainlyIn (bytes: Buffer): boolean {
    const text = bytes.toString('latin1')
    return this.#forms.some((form) => text.includes(form))
  }
}

function forEach (text: string, part: string, visit: (from: number, to: number) => void): void {
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) visit(at, at + part.length)
}

/** Masks bytes that come in pieces. The last bytes are held back, because a secret may begin there; no secret spans lines. */
export class PieceMask {
  readonly #search: SecretSearch
  #waiting: Buffer = Buffer.alloc(0)

  constructor (search: SecretSearch) {
    this.#search = search
  }

  push (piece: Buffer): Buffer {
    const bytes = this.#search.masked(Buffer.concat([this.#waiting, piece]))
    const at = Math.max(0, bytes.length - this.#search.maxBytes, bytes.lastIndexOf(lineFeed) + 1)
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
