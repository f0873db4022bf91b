/**
 * What windows tell. Four rounds make a block; a ratio is taken within each block, where
 * the machine was the same for all, and the median of the blocks is the result. A block is long enough to hold what a
 * program does every few windows, such as a collection of its whole heap, and never spans two generations of processes.
 */
import type { Load } from './load/generators.js'
import { median, quantile } from './stats.js'

export const blockRounds = 4

export interface Window {
  readonly load: Load
  /** Microseconds of processor time of the target, NaN where the process is not ours. */
  readonly cpuUs: number
  /** Collections of the target's whole heap. */
  readonly markCompacts: number
}

/** Windows of each target in the order of the rounds. */
export type Results = ReadonlyMap<string, readonly Window[]>

/** One number for windows that belong together. */
export type Reading = (windows: readonly Window[]) => number

function sum (values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

const requests: Reading = windows => sum(windows.map(window => window.load.requests))

/** Processor time of one request, microseconds. */
export const cpuUs: Reading = windows => sum(windows.map(window => window.cpuUs)) / requests(windows)
export const perSecond: Reading = windows => requests(windows) / sum(windows.map(window => window.load.elapsedMs)) * 1000
export const p50Ms: Reading = windows => median(windows.flatMap(window => window.load.latenciesMs))
export const p99Ms: Reading = windows => quantile(windows.flatMap(window => window.load.latenciesMs), 0.99)
export const firstByteMs: Reading = windows => median(windows.flatMap(window => window.load.firstByteMs))

export type Quartiles = readonly [lower: number, upper: number]

/** The windows of the targets named, in one block: two names of one program are one sample. */
export type Block = (...names: string[]) => readonly Window[]

/** What `read` makes of each block. */
function ofBlocks (results: Results, read: (block: Block) => number): number[] {
  const rounds = Math.max(0, ...[...results.values()].map(windows => windows.length))
  const values: number[] = []
  for (let round = 0; round < rounds; round += blockRounds) {
    values.push(read((...names) => names.flatMap(name => (results.get(name) ?? []).slice(round, round + blockRounds))))
  }
  return values
}

/** Median over the blocks. */
export function overBlocks (results: Results, read: (block: Block) => number): number {
  return median(ofBlocks(results, read))
}

export function level (results: Results, read: Reading, ...names: string[]): number {
  return overBlocks(results, block => read(block(...names)))
}

/** Median over single windows: what the machine's own pauses do to some of them does not count, in any program alike. */
export function typical (results: Results, read: Reading, ...names: string[]): number {
  return median(names.flatMap(name => (results.get(name) ?? []).map(window => read([window]))))
}

/** One number for all windows of the run, whatever their block. */
export function pooled (results: Results, read: Reading, ...names: string[]): number {
  return read(names.flatMap(name => results.get(name) ?? []))
}

export function ratio (results: Results, read: Reading, above: readonly string[], below: readonly string[]): number {
  return overBlocks(results, block => read(block(...above)) / read(block(...below)))
}

/** Between which values the middle half of the blocks lies. */
export function quartilesOf (results: Results, read: (block: Block) => number): Quartiles {
  const values = ofBlocks(results, read)
  return [quantile(values, 0.25), quantile(values, 0.75)]
}

export function quartiles (results: Results, read: Reading, above: readonly string[], below: readonly string[]): Quartiles {
  return quartilesOf(results, block => read(block(...above)) / read(block(...below)))
}

/** How far a program lies from itself under another name: what the run cannot tell from zero. */
export function twinSpread (results: Results, read: Reading, first: string, second: string): number {
  return Math.abs(ratio(results, read, [second], [first]) - 1)
}
