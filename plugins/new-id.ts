import { randomFillSync } from 'node:crypto'

const idsAtOnce = 128
const dash = '-'.charCodeAt(0)
const version = '4'.charCodeAt(0)
const variant = 'a'.charCodeAt(0)

const random = Buffer.alloc(16 * idsAtOnce)
const text = Buffer.alloc(36 * idsAtOnce)
let next = text.length

/**
 * A random UUID (RFC 9562 5.4). Node's own puts each together from twenty strings: 650 bytes of garbage, and a string in
 * pieces that its first use has to join.
 */
export function newId (): string {
  if (next === text.length) refill()
  next += 36
  return text.toString('latin1', next - 36, next)
}

function refill (): void {
  const digits = randomFillSync(random).toString('hex')
  let to = 0
  for (let i = 0; i < digits.length; i += 1) {
    const place = i % 32
    if (place === 8 || place === 12 || place === 16 || place === 20) text[to++] = dash
    text[to++] = place === 12 ? version : place === 16 ? variant : digits.charCodeAt(i)
  }
  next = 0
}
