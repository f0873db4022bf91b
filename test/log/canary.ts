/** A secret that is easy to find again, however it was written on the way. */

/** Shortest piece whose presence is a leak: whoever logs a beginning or an end of a key tells it too. */
const pieceLength = 8

export class Canary {
  readonly secret: string
  readonly #needles: ReadonlyMap<string, string>

  /** `secret`: letters and digits that occur nowhere else. */
  constructor (secret: string) {
    this.secret = secret
    this.#needles = new Map([
      ...pieces(secret).map((piece) => [piece, 'plain'] as const),
      ...pieces(secret).map((piece) => [everyByteEncoded(piece), 'percent-encoded'] as const),
      ...pieces(Buffer.from(secret).toString('hex')).filter((_, index) => index % 2 === 0).map((piece) => [piece, 'hex'] as const),
      ...[0, 1, 2].flatMap((shift) => pieces(base64At(secret, shift)).map((piece) => [piece, 'base64'] as const)),
    ])
  }

  /** How the secret is written with each byte percent-encoded, as a query may carry it. */
  get encoded (): string {
    return everyByteEncoded(this.secret)
  }

  /** The places where `text` holds a piece of the secret, in any spelling. */
  findIn (text: string): string[] {
    const lower = text.toLowerCase()
    return [...this.#needles].filter(([needle, kind]) => kind === 'base64' ? text.includes(needle) : lower.includes(needle.toLowerCase()))
      .map(([needle, kind]) => `${kind}: ...${text.slice(Math.max(0, lower.indexOf(needle.toLowerCase()) - 60)).slice(0, 120)}...`)
  }
}

function pieces (text: string): string[] {
  return Array.from({ length: text.length - pieceLength + 1 }, (_, start) => text.slice(start, start + pieceLength))
}

function everyByteEncoded (text: string): string {
  return [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
}

/** The part of the base64 text that is the same whatever stands before the secret. */
function base64At (secret: string, shift: number): string {
  return Buffer.from('x'.repeat(shift) + secret).toString('base64').replace(/=+$/, '').slice(shift === 0 ? 0 : 4, -2)
}
