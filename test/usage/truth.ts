import { isDeepStrictEqual } from 'node:util'
import * as zlib from 'node:zlib'
import { bytesOf, cutAt, eventsOf, meter, meterCoded, type Metered } from './meter-reply.js'

/** Replies up to here are cut in two at every offset; larger ones at so many random offsets, in as many readings as are cheap. */
const everyOffsetBytes = 4 * 1024
const randomCuts = 2_000
const cheapBytes = 16 * 1024 * 1024

/** What a reply must come to. An absent field is not compared. */
export interface Truth {
  leaves: Record<string, number> | null
  inconsistent?: boolean
  missing?: string
  modalities?: [string, string, number][]
  model?: string
  id?: string
  finish?: string | null
}

/** Everything that differs between a metered reply and its truth; null where nothing does. */
export function differenceOf ({ llm, out }: Metered, bytes: Buffer, truth: Truth): object | null {
  const found = {
    leaves: llm.usage,
    inconsistent: llm.usageInconsistent,
    missing: llm.usageMissing ?? undefined,
    modalities: llm.modalities?.map(({ direction, modality, tokens }) => [direction, modality, tokens]),
    model: llm.responseModel,
    id: llm.responseId,
    finish: llm.finishReason,
  }
  const wanted = { ...found, inconsistent: false, missing: undefined, ...truth }
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
export function firstWrongSplit (protocol: string, bytes: Buffer, truth: Truth): object | null {
  for (const pieces of splits(bytes)) {
    const difference = differenceOf(meter(protocol, pieces), bytes, truth)
    if (difference !== null) return { cuts: pieces.map((piece) => piece.length), ...difference }
  }
  return null
}

function * splits (bytes: Buffer): Generator<Buffer[]> {
  yield [bytes]
  yield eventsOf(bytes)
  yield bytesOf(bytes)
  if (bytes.length <= everyOffsetBytes) {
    for (let at = 1; at < bytes.length; at++) yield cutAt(bytes, [at])
    return
  }
  const random = generator(bytes.length)
  const readings = Math.min(randomCuts, Math.ceil(cheapBytes / bytes.length))
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

/** Every content coding that this Node has. */
export const encoders: Record<string, (bytes: Buffer) => Buffer> = {
  gzip: (bytes) => zlib.gzipSync(bytes),
  deflate: (bytes) => zlib.deflateSync(bytes),
  br: (bytes) => zlib.brotliCompressSync(bytes),
  ...(typeof zstd === 'function' && { zstd: (bytes: Buffer) => zstd(bytes) }),
}

/** The first compressed form that does not come to the truth, or null. */
export async function firstWrongCoding (protocol: string, bytes: Buffer, truth: Truth): Promise<object | null> {
  for (const [coding, encode] of Object.entries(encoders)) {
    const coded = encode(bytes)
    for (const pieces of [[coded], cutAt(coded, [1, coded.length >> 1]), bytesOf(coded.subarray(0, 3_000)).concat(coded.subarray(3_000))]) {
      const difference = differenceOf(await meterCoded(protocol, pieces, coding), coded, truth)
      if (difference !== null) return { coding, pieces: pieces.length, ...difference }
    }
  }
  return null
}
