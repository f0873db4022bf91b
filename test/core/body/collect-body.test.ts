import { PassThrough, Readable } from 'node:stream'
import fc from 'fast-check'
import t from 'tap'
import { BodyMemory } from '../../../plugins/core/body/body-memory.js'
import { collectBody, declaredLength, largeBytes, type BodyOwner, type SharedBounds } from '../../../plugins/core/body/collect-body.js'

type Outcome = Buffer | string

const unbounded: SharedBounds = { bodyPace: null, bodyMemory: null }

function owner (maxBytes: number): BodyOwner {
  return { settled: false, body: { maxBytes, heldBytes: 0 } }
}

/** The body, or the code of what went wrong. Fails where the callback is called twice. */
async function collect (stream: Readable, contentLength: number | null, maxBytes: number, bounds = unbounded): Promise<Outcome> {
  let calls = 0
  const outcome = await new Promise<Outcome>((resolve) => collectBody(stream, contentLength, owner(maxBytes), (error, body) => {
    calls += 1
    resolve(error === null ? body : error.code)
  }, bounds))
  await new Promise(setImmediate)
  if (calls !== 1) throw new Error(`called ${calls} times`)
  return outcome
}

t.test('a body that comes in one piece is not copied', async (t) => {
  const piece = Buffer.from('{"a":1}')
  t.equal(await collect(Readable.from([piece]), piece.length, 100), piece)
  t.equal(await collect(Readable.from([piece]), null, 100), piece, 'chunked')
})

t.test('a body without bytes is an empty buffer', async (t) => {
  t.strictSame(await collect(Readable.from([]), 0, 100), Buffer.alloc(0))
})

t.test('any pieces give the same bytes, whatever length was declared', async (t) => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 50 }).map((bytes) => Buffer.from(bytes)), { maxLength: 8 })
  await fc.assert(fc.asyncProperty(pieces, fc.option(fc.nat(500)), async (list, declared) => {
    const whole = Buffer.concat(list)
    const got = await collect(Readable.from(list, { objectMode: true }), declared, 1000)
    return typeof got !== 'string' && got.equals(whole)
  }), { numRuns: 300 })
  t.pass()
})

t.test('large bodies are whole, with and without a declared length', async (t) => {
  const pieces = Array.from({ length: 50 }, (_, index) => Buffer.alloc(65_536, index))
  const whole = Buffer.concat(pieces)
  for (const declared of [whole.length, null]) {
    const got = await collect(Readable.from(pieces), declared, whole.length)
    t.ok(typeof got !== 'string' && got.equals(whole), String(declared))
  }
})

t.test('text chunks of a host\'s own stream are taken as UTF-8', async (t) => {
  t.strictSame(await collect(Readable.from(['é', 'ü'], { objectMode: true }), null, 100), Buffer.from('éü'))
})

t.test('a declared length past the cap is refused before a byte is read', async (t) => {
  const stream = new PassThrough()
  t.equal(await collect(stream, 101, 100), 'body_too_large')
  t.equal(stream.listenerCount('data'), 0)
  t.equal(stream.readableFlowing, null, 'left for whoever drains it')
})

t.test('a body is cut off as soon as it passes the cap', async (t) => {
  for (const declared of [null, 10]) {
    const stream = new PassThrough()
    const done = collect(stream, declared, 100)
    stream.write(Buffer.alloc(100))
    stream.write(Buffer.alloc(1))
    t.equal(await done, 'body_too_large')
    t.equal(stream.listenerCount('data'), 0)
    stream.destroy(new Error('fails after it was refused'))
    await new Promise(setImmediate)
  }
  const exact = Buffer.alloc(100)
  t.equal(await collect(Readable.from([exact]), 100, 100), exact, 'the cap itself passes')
})

t.test('a caller that leaves is told apart', async (t) => {
  const cut = new PassThrough()
  const done = collect(cut, 100, 100)
  cut.write('half')
  cut.destroy()
  t.equal(await done, 'request_aborted')

  const broken = new PassThrough()
  const failed = collect(broken, null, 100)
  broken.destroy(new Error('reset'))
  t.equal(await failed, 'request_aborted')

  t.equal(await collect(cut, null, 100), 'request_aborted', 'already gone')
})

t.test('a declared length is a number or null', async (t) => {
  t.equal(declaredLength('12'), 12)
  t.equal(declaredLength(undefined), null)
})

t.test('a large body is read as there is room for it, and lies in memory of its own', async (t) => {
  const rooms: Array<() => void> = []
  const pace = { isFull: true, onRoom: (goOn: () => void) => { rooms.push(goOn) } }
  const stream = new PassThrough({ highWaterMark: 4 * largeBytes })
  const bytes = Buffer.alloc(2 * largeBytes, 'x')
  const collected = new Promise<Buffer | null>((resolve) => collectBody(
    stream, null, owner(4 * largeBytes), (_error, body) => resolve(body), { bodyPace: pace, bodyMemory: null }
  ))
  stream.write(bytes.subarray(0, largeBytes))
  await new Promise(setImmediate)
  t.equal(stream.isPaused(), false, 'one that is not large is not held')
  stream.write(bytes.subarray(largeBytes))
  stream.end()
  await new Promise(setImmediate)
  t.equal(stream.isPaused(), true)
  pace.isFull = false
  for (const goOn of rooms) goOn()
  t.ok(bytes.equals(await collected ?? Buffer.alloc(0)))
  const whole = await collect(Readable.from([bytes]), bytes.length, bytes.length)
  t.ok(typeof whole !== 'string' && whole.equals(bytes) && whole.buffer !== bytes.buffer)
})

t.test('large bodies share a bound: by their declared length, as they come, and small ones have no part in it', async (t) => {
  const bodyMemory = new BodyMemory(3 * largeBytes, () => {})
  const bounds = { bodyPace: null, bodyMemory }
  const large = Buffer.alloc(2 * largeBytes, 'x')
  const first = owner(large.length)
  const whole = await new Promise<Buffer | null>((resolve) => collectBody(
    Readable.from([large]), null, first, (_error, body) => resolve(body), bounds
  ))
  t.ok(whole?.equals(large))
  t.equal(first.body.heldBytes, large.length, 'what was reserved beyond it does not count')
  const unread = new PassThrough()
  t.equal(await collect(unread, large.length, large.length, bounds), 'overloaded')
  t.equal(unread.readableFlowing, null, 'not a byte is read')
  const pieces = [large.subarray(0, largeBytes), large.subarray(largeBytes)]
  t.equal(await collect(Readable.from(pieces), null, large.length, bounds), 'overloaded')
  t.ok(Buffer.isBuffer(await collect(Readable.from([large.subarray(0, largeBytes)]), largeBytes, large.length, bounds)))
  bodyMemory.leave(first)
  t.ok(Buffer.isBuffer(await collect(Readable.from(pieces), null, large.length, bounds)), 'there is room again')
})

t.test('a large body without a length that has no room beside others is refused, in whatever pieces it comes', async () => {
  const large = Buffer.alloc(2 * largeBytes, 'x')
  const cuts = fc.array(fc.integer({ min: 1, max: large.length - 1 }), { maxLength: 8 })
  await fc.assert(fc.asyncProperty(cuts, fc.boolean(), async (at, fits) => {
    const bodyMemory = new BodyMemory((fits ? 4 : 3.5) * largeBytes, () => {})
    bodyMemory.keep(owner(large.length), large.length)
    const ends = [...new Set(at)].toSorted((a, b) => a - b)
    const pieces = [...ends, large.length].map((end, place) => large.subarray(ends[place - 1] ?? 0, end))
    const outcome = await collect(Readable.from(pieces), null, large.length, { bodyPace: null, bodyMemory })
    return fits ? large.equals(Buffer.from(outcome)) : outcome === 'overloaded'
  }), { numRuns: 200 })
})
