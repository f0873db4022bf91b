import { randomFillSync } from 'node:crypto'

const idLength = 36
const ids = 64
/** Where in an id its digits stand: all but the dashes. */
const places = [...Array(idLength).keys()].filter((place) => ![8, 13, 18, 23].includes(place))
const version = '4'.charCodeAt(0)
const variants = Buffer.from('89ab')
const text = Buffer.alloc(ids * idLength, '-')
const random = Buffer.alloc(ids * 16)
let next = text.length

/**
 * A UUID of 122 random bits (RFC 9562 5.4), written many at a time. What `randomUUID` returns is joined from twenty pieces,
 * and joined once more by each that looks into it: a hundredth of a request.
 */
export function requestId (): string {
  if (next === text.length) write()
  next += idLength
  return text.toString('latin1', next - idLength, next)
}

function write (): void {
  const digits = Buffer.from(randomFillSync(random).toString('hex'), 'latin1')
  let digit = 0
  for (let id = 0; id < text.length; id += idLength) {
    for (const place of places) text[id + place] = Number(digits[digit++])
    text[id + 14] = version
    // Two bits of the four that this digit has: the others say which layout it is.
    text[id + 19] = Number(variants[Number(random[id / idLength * 16 + 8]) >> 4 & 3])
  }
  next = 0
}
