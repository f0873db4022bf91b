/** Adds up parts of files in as many threads as there are cores. Sums are exact, so that their order makes no difference. */
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { threadOptions } from '../../plugins/core/thread-options.js'
import { partAdder, type SumQuestion } from './add-part.js'
import type { FilePart } from './file-parts.js'
import type { Question } from './wanted.js'
import type { Sum, Sums } from './sums.js'

const file = new URL(`./add-thread${import.meta.url.slice(-3)}`, import.meta.url)
const maxThreads = 4
/** Starting a thread takes as long as this many parts. */
const partsPerThread = 2

/** The task of a thread. */
export interface ThreadTask {
  readonly parts: readonly FilePart[]
  /** Number of parts begun by all threads together. */
  readonly begun: SharedArrayBuffer
  readonly by: readonly string[]
  readonly zone: string
  readonly question: Question
}

/** The last message of a thread. Those before are null, one for each part that it has read. */
export interface ThreadAnswer {
  /** By file. */
  readonly damaged: ReadonlyMap<string, number>
  readonly sums: readonly Sum[]
}

export interface Listening {
  readonly onDamage: (path: string, lines: number) => void
  readonly onProgress: (done: number, total: number) => void
}

export async function addParts (
  parts: readonly FilePart[], sums: Sums, asked: SumQuestion, { onDamage, onProgress }: Listening, cores = availableParallelism()
): Promise<void> {
  const threads = Math.min(maxThreads, cores, Math.floor(parts.length / partsPerThread))
  let done = 0
  const onPart = (): void => { onProgress(done += 1, parts.length) }
  if (threads < 2) {
    const add = partAdder(sums, asked, (path) => onDamage(path, 1))
    for (const part of parts) {
      add(part)
      onPart()
    }
    return
  }
  const { by, calendar, question } = asked
  const task = { parts, begun: new SharedArrayBuffer(4), by: by.map(({ name }) => name), zone: calendar.zone, question }
  const answers = await Promise.all(Array.from({ length: threads }, async () => await answerOf(task, onPart)))
  for (const { damaged, sums: others } of answers) {
    sums.merge(others)
    for (const [path, lines] of damaged) onDamage(path, lines)
  }
}

async function answerOf (task: ThreadTask, onPart: () => void): Promise<ThreadAnswer> {
  const worker = new Worker(file, { ...threadOptions(file), workerData: task, name: 'llm-gateway usage' })
  return await new Promise((resolve, reject) => {
    worker.on('message', (answer: ThreadAnswer | null) => {
      if (answer === null) onPart()
      else resolve(answer)
    })
    worker.on('error', reject)
    worker.on('exit', (code) => reject(new Error(`a thread that read the ledger ended with ${code}`)))
  })
}
