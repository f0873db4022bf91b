/**
 * How lmdb stores accounts, buckets and holds: numbers of eight bytes in a fixed order, a text behind its length. The written buffer is
 * valid until the next write: the store copies it at once.
 */
import { newWindow } from '../../core/balances/window.js'
import type { BucketRecord, HeldBucket } from '../../core/balances/buckets.js'
import type { AccountRecord, HoldRecord } from '../../core/balances/group-store.js'
import type { Scope } from '../types.js'

/** Longer names of parties without limits of their own are cut: nobody reads them. */
const maxTextBytes = 1_500

const numbers = new Float64Array(512)
const bytesOfNumbers = Buffer.from(numbers.buffer)
const bytes = Buffer.alloc(64 * 1024)

/** Fields: spent, held, active, then second, requests and tokens of each entry of the window. */
export function writeAccount ({ spent, held, active, window }: AccountRecord): Buffer {
  numbers[0] = spent
  numbers[1] = held
  numbers[2] = active
  let at = 3
  for (const entry of window.entries) {
    numbers[at] = entry.second
    numbers[at + 1] = entry.requests
    numbers[at + 2] = entry.tokens
    at += 3
  }
  return bytesOfNumbers.subarray(0, at * 8)
}

export function readAccount (buffer: Buffer): AccountRecord {
  const window = newWindow()
  for (let at = 24; at < buffer.length; at += 24) {
    const entry = { second: buffer.readDoubleLE(at), requests: buffer.readDoubleLE(at + 8), tokens: buffer.readDoubleLE(at + 16) }
    window.entries.push(entry)
    window.requests += entry.requests
    window.tokens += entry.tokens
  }
  return { spent: buffer.readDoubleLE(0), held: buffer.readDoubleLE(8), active: buffer.readDoubleLE(16), window }
}

export function writeBucket ({ spent, held, amount, toldPercent, otherAmount, otherToldPercent, endsAt }: BucketRecord): Buffer {
  numbers.set([spent, held, amount, toldPercent, endsAt ?? Infinity, otherAmount, otherToldPercent])
  return bytesOfNumbers.subarray(0, 56)
}

export function readBucketRecord (buffer: Buffer): BucketRecord {
  return bucketOf(bucketNumbers(buffer))
}

export function bucketNumbers (buffer: Buffer): number[] {
  return readNumbers(buffer, 0, buffer.length >> 3)
}

/** From its numbers in the order in which it is stored. */
export function bucketOf (
  [spent = 0, held = 0, amount = 0, toldPercent = 0, ends = Infinity, otherAmount = 0, otherToldPercent = 0]: readonly number[]
): BucketRecord {
  return { spent, held, amount, toldPercent, otherAmount, otherToldPercent, endsAt: ends === Infinity ? null : ends }
}

/** Two numbers: no open hold of a group is due before the first, no closed one before the second. */
export function writeQuiet (open: number, closed: number): Buffer {
  numbers[0] = open
  numbers[1] = closed
  return bytesOfNumbers.subarray(0, 16)
}

export function readNumbers (buffer: Buffer, at: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => buffer.readDoubleLE(at + index * 8))
}

const isActive = 1
const isSettled = 2
const scopeBits: Readonly<Record<Scope, number>> = { key: 4, group: 8 }
const costBit = 16
/** Bits of parties without a balance: in a hold of an older version, each party that is counted has one. */
const withoutBalanceBits: Readonly<Record<Scope, number>> = { key: 32, group: 64 }
const allScopes = ['key', 'group'] as const

/**
 * Fields: a byte of flags, six numbers, the key, then for each bucket a byte for scope and unit, and its id. State, id and group are in the
 * hold's name.
 */
export function writeHold (hold: HoldRecord): Buffer {
  const { key, scopes, balances, buckets, tokens, cost, floor, costFloor, active, second, deadline, settled } = hold
  let flags = active === 1 ? isActive : 0
  if (settled === true) flags |= isSettled
  for (const scope of scopes) flags |= scopeBits[scope]
  for (const scope of scopes) if (!balances.includes(scope)) flags |= withoutBalanceBits[scope]
  let at = bytes.writeUInt8(flags, 0)
  for (const value of [tokens, cost, floor, costFloor, second, deadline]) at = bytes.writeDoubleLE(value, at)
  at = writeText(key, at)
  for (const { scope, id, unit } of buckets) {
    at = bytes.writeUInt8(scopeBits[scope] | (unit === 'cost' ? costBit : 0), at)
    at = writeText(id, at)
  }
  return bytes.subarray(0, at)
}

export function readHold (buffer: Buffer, group: string, id: string, state: HoldRecord['state']): HoldRecord {
  const flags = buffer.readUInt8(0)
  const [tokens = 0, cost = 0, floor = 0, costFloor = 0, second = 0, deadline = 0] = readNumbers(buffer, 1, 6)
  const key = readText(buffer, 49)
  const buckets: HeldBucket[] = []
  for (let at = key.end; at < buffer.length;) {
    const kind = buffer.readUInt8(at)
    const { text, end } = readText(buffer, at + 1)
    buckets.push({ scope: (kind & scopeBits.group) === 0 ? 'key' : 'group', id: text, unit: (kind & costBit) === 0 ? 'tokens' : 'cost' })
    at = end
  }
  const scopes = allScopes.filter((scope) => (flags & scopeBits[scope]) !== 0)
  return {
    id,
    group,
    key: key.text,
    scopes,
    balances: scopes.filter((scope) => (flags & withoutBalanceBits[scope]) === 0),
    buckets,
    tokens,
    cost,
    floor,
    costFloor,
    active: (flags & isActive) === 0 ? 0 : 1,
    second,
    deadline,
    state,
    ...(flags & isSettled) !== 0 && { settled: true },
  }
}

function writeText (text: string, at: number): number {
  const length = bytes.write(text, at + 2, maxTextBytes, 'utf8')
  bytes.writeUInt16LE(length, at)
  return at + 2 + length
}

function readText (buffer: Buffer, at: number): { readonly text: string, readonly end: number } {
  const end = at + 2 + buffer.readUInt16LE(at)
  return { text: buffer.toString('utf8', at + 2, end), end }
}
