import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import type { Transform } from 'node:stream'
import { isDeepStrictEqual } from 'node:util'
import * as zlib from 'node:zlib'
import { bytesOf, cutAt, eventsOf, meter, meterCoded, type Metered } from './meter-reply.js'

/**
 * Replies up to here are cut in two at every offset; larger ones at so many random offsets, in as many readings as are cheap,
 * or in one reading each where all is to be tried.
 */
const everyOffsetBytes = 4 * 1024
const randomCuts = 2_000
const cheapBytes = 16 * 1024 * 1024
/** Compressed replies are read at so many random cuts, and so many of their bytes one by one, unless all is to be tried. */
const codedCuts = 8
const codedBytes = 3_000

/** What a reply must come to. An absent field is not compared. */
export interface Truth {
  leaves: Record<string, number> | null
  inconsistent?: boolean
  missing?: string
  failed?: boolean
  modalities?: [string, string, number][]
  model?: string
  id?: string
  finish?: string | null
}

/** A reply whose truth is known. */
export interface Reply {
  readonly file: string
  readonly protocol: string
  readonly bytes: Buffer
  readonly truth: Truth
}

const folders = { fixtures: new URL('../fixtures/usage/', import.meta.url), corpus: new URL('../../../shared/corpus/', import.meta.url) }

/** The hand-written replies, or those that providers' recordings are: kept beside the project, not in it, so there may be none. */
export function repliesIn (folder: keyof typeof folders): Reply[] {
  const base = folders[folder]
  if (!existsSync(base)) return []
  const expected: Record<string, Truth | Truth['leaves']> = JSON.parse(readFileSync(new URL('expected.json', base), 'utf8'))
  return Object.entries(expected).map(([file, told]) => {
    return { file, protocol: String(file.split('/')[0]), bytes: readFileSync(new URL(file, base)), truth: truthOf(told) }
  })
}

/** Recordings come with their leaves alone. */
function truthOf (told: Truth | Truth['leaves']): Truth {
  if (told === null) return { leaves: null, missing: 'no_usage' }
  return isTruth(told) ? told : { leaves: told }
}

function isTruth (told: object): told is Truth {
  return 'leaves' in told
}

/** Everything that differs between a metered reply and its truth; null where nothing does. */
export function differenceOf ({ llm, out }: Metered, bytes: Buffer, truth: Truth): object | null {
  const found = {
    leaves: llm.usage.tokens,
    inconsistent: llm.usage.inconsistent,
    missing: llm.usage.missing ?? undefined,
    failed: llm.usage.replyFailed,
    modalities: llm.usage.modalities?.map(({ direction, modality, tokens }) => [direction, modality, tokens]),
    model: llm.usage.responseModel,
    id: llm.usage.responseId,
    finish: llm.usage.finishReason,
  }
  const wanted = { ...found, inconsistent: false, missing: undefined, failed: false, ...truth }
  if (out.equals(bytes) && isDeepStrictEqual(summed(found), summed(wanted))) return null
  return { found, wanted, bytesAreEqual: out.equals(bytes) }
}

/** Modalities in any order, those of the same kind added up. */
function summed<T extends { modalities: unknown }> (facts: T): T {
  const kinds: Record<string, number> = {}
  for (const [direction, modality, tokens] of Array.isArray(facts.modalities) ? facts.modalities : []) {
    kinds[`${direction} ${modality}`] = (kinds[`${direction} ${modality}`] ?? 0) + Number(tokens)
  }
  return { ...facts, modalities: kinds }
}

/** The first way of cutting a reply that does not come to the truth, or null. */
export function firstWrongSplit (protocol: string, bytes: Buffer, truth: Truth, all = false): object | null {
  for (const pieces of splits(bytes, all)) {
    const difference = differenceOf(meter(protocol, pieces), bytes, truth)
    if (difference !== null) return { cuts: pieces.map((piece) => piece.length), ...difference }
  }
  return null
}

function * splits (bytes: Buffer, all: boolean): Generator<Buffer[]> {
  yield [bytes]
  yield eventsOf(bytes)
  yield bytesOf(bytes)
  if (all || bytes.length <= everyOffsetBytes) yield * cutsOf(bytes)
  else yield * randomSplits(bytes, Math.min(randomCuts, Math.ceil(cheapBytes / bytes.length)))
}

/** In two at every offset, or at as many random ones. */
function * cutsOf (bytes: Buffer): Generator<Buffer[]> {
  if (bytes.length > everyOffsetBytes) yield * randomSplits(bytes, randomCuts)
  else for (let at = 1; at < bytes.length; at++) yield cutAt(bytes, [at])
}

function * randomSplits (bytes: Buffer, readings: number): Generator<Buffer[]> {
  const random = generator(bytes.length)
  for (let index = 0; index < readings; index++) {
    yield cutAt(bytes, Array.from({ length: Math.ceil(randomCuts / readings) }, () => random() % bytes.length))
  }
}

/** The same numbers in every run (the constants are those of Numerical Recipes). */
function generator (seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state >>> 4
  }
}

const zstd: unknown = Reflect.get(zlib, 'zstdCompressSync')
const openZstd: unknown = Reflect.get(zlib, 'createZstdCompress')

/** Every content coding that this Node has. */
export const encoders: Record<string, (bytes: Buffer) => Buffer> = {
  gzip: (bytes) => zlib.gzipSync(bytes),
  deflate: (bytes) => zlib.deflateSync(bytes),
  br: (bytes) => zlib.brotliCompressSync(bytes),
  ...(typeof zstd === 'function' && { zstd: (bytes: Buffer) => zstd(bytes) }),
}

type Compressor = Transform & { flush: (done: () => void) => void }

const compressors: Record<string, () => Compressor> = {
  gzip: () => zlib.createGzip(),
  deflate: () => zlib.createDeflate(),
  br: () => zlib.createBrotliCompress(),
  ...(typeof openZstd === 'function' && { zstd: () => openZstd() }),
}

/** As a server streams: each piece compressed and flushed by itself. */
export async function encodedByPiece (coding: string, pieces: readonly Buffer[]): Promise<Buffer[]> {
  const stream = compressors[coding]?.()
  if (stream === undefined) throw new Error(`this Node has no ${coding}`)
  const coded: Buffer[] = []
  stream.on('data', (chunk: Buffer) => { coded.push(chunk) })
  for (const piece of pieces) {
    stream.write(piece)
    await new Promise<void>((resolve) => { stream.flush(resolve) })
  }
  stream.end()
  await once(stream, 'end')
  return coded
}

/** The first compressed form that does not come to the truth, or null. */
export async function firstWrongCoding (protocol: string, bytes: Buffer, truth: Truth, all = false): Promise<object | null> {
  for (const [coding, encode] of Object.entries(encoders)) {
    const byEvent = await encodedByPiece(coding, eventsOf(bytes))
    for (const pieces of [byEvent, ...codedSplits(encode(bytes), all)]) {
      const difference = differenceOf(await meterCoded(protocol, pieces, coding), Buffer.concat(pieces), truth)
      if (difference !== null) return { coding, cuts: pieces.map((piece) => piece.length), ...difference }
    }
  }
  return null
}

function * codedSplits (coded: Buffer, all: boolean): Generator<Buffer[]> {
  yield [coded]
  const single = all ? coded.length : codedBytes
  yield bytesOf(coded.subarray(0, single)).concat(coded.subarray(single))
  if (all) yield * cutsOf(coded)
  else yield cutAt(coded, Array.from({ length: codedCuts }, generator(coded.length)).map((at) => at % coded.length))
}
