import { AsyncResource } from 'node:async_hooks'
import { Worker, type Transferable } from 'node:worker_threads'
import type { Pace } from '../core/body/collect-body.js'
import { threadOptions } from '../core/thread-options.js'

export interface ThreadOptions {
  /** The file that a thread runs: it answers each message with one message. */
  readonly file: URL
  /** The `workerData` of the file. */
  readonly data: unknown
  readonly maxThreads: number
  /** Heap of one thread in MB: a thread that needs more is ended. */
  readonly heapMb: number
  /** A thread without work ends after this time, which releases its memory. */
  readonly idleMs: number
  /** A thread that has not answered within this time is ended. */
  readonly answerMs: number
  /** When this many bytes wait for a thread, no more should be read. */
  readonly maxWaitingBytes: number
}

interface Task<Answer> {
  readonly question: unknown
  /** Transferred to the thread. */
  readonly bytes: ArrayBuffer
  readonly isWanted: () => boolean
  readonly resolve: (answer: Answer | null) => void
  readonly reject: (error: unknown) => void
}

/** A thread that is working or waiting. */
interface Thread<Answer> {
  readonly worker: Worker
  task: Task<Answer> | null
  timer: NodeJS.Timeout | undefined
  /** Why it ends, if it reported that. */
  error: Error | null
}

/**
 * A few threads for work that would block the event loop, started when there is any and ended after a while without. Node's own workers and
 * not a pool from a package: only a queue is needed, and a package would listen on the process, or take 50 ms to load in the middle of a
 * request.
 */
export class Threads<Answer> implements Pace {
  readonly #options: ThreadOptions
  /** A thread outlives the request that it was started for: its events must not run in that request's async context. */
  readonly #scope = new AsyncResource('llm-gateway.threads')
  readonly #threads = new Set<Thread<Answer>>()
  readonly #queue: Array<Task<Answer>> = []
  readonly #paused: Array<() => void> = []
  #waitingBytes = 0
  #closed = false

  constructor (options: ThreadOptions) {
    this.#options = options
  }

  /**
   * Resolves with a thread's answer, or with null if nobody wants it any more when a thread is free. Rejects if the thread ends, is out of
   * memory or takes too long: the next question goes to another one.
   */
  async ask (question: unknown, bytes: ArrayBuffer, isWanted: () => boolean): Promise<Answer | null> {
    return await new Promise((resolve, reject) => {
      this.#queue.push({ question, bytes, isWanted, resolve, reject })
      this.#waitingBytes += bytes.byteLength
      this.#next()
    })
  }

  get isFull (): boolean {
    return this.#waitingBytes > this.#options.maxWaitingBytes
  }

  onRoom (goOn: () => void): void {
    this.#paused.push(goOn)
  }

  async close (): Promise<void> {
    this.#closed = true
    this.#next()
    await Promise.all([...this.#threads].map(async ({ worker }) => await worker.terminate()))
  }

  #next (): void {
    const free = this.#closed ? undefined : [...this.#threads].find(({ task }) => task === null)
    if (free === undefined && !this.#closed && this.#threads.size >= this.#options.maxThreads) return
    const task = this.#wanted()
    if (task === undefined) return
    try {
      this.#give(free ?? this.#start(), task)
    } catch (error) {
      task.reject(error)
    }
  }

  /** The next task that somebody waits for. */
  #wanted (): Task<Answer> | undefined {
    let task = this.#queue.shift()
    while (task !== undefined) {
      this.#waitingBytes -= task.bytes.byteLength
      if (!this.#closed && task.isWanted()) break
      giveUp(task, new Error('the threads are closed'))
      task = this.#queue.shift()
    }
    if (!this.isFull) for (const goOn of this.#paused.splice(0)) goOn()
    return task
  }

  #start (): Thread<Answer> {
    const { file, data, heapMb } = this.#options
    const worker = this.#scope.runInAsyncScope(() => new Worker(file, {
      ...threadOptions(file), workerData: data, name: 'llm-gateway', resourceLimits: { maxOldGenerationSizeMb: heapMb },
    }))
    const thread: Thread<Answer> = { worker, task: null, timer: undefined, error: null }
    worker.on('message', (answer: Answer) => this.#answered(thread, answer))
    worker.on('error', (error) => { thread.error = error })
    worker.on('exit', () => this.#ended(thread))
    this.#threads.add(thread)
    return thread
  }

  #give (thread: Thread<Answer>, task: Task<Answer>): void {
    const transfer: Transferable[] = [task.bytes]
    thread.worker.postMessage(task.question, transfer)
    thread.task = task
    thread.worker.ref()
    this.#endAfter(thread, this.#options.answerMs)
  }

  #answered (thread: Thread<Answer>, answer: Answer): void {
    thread.task?.resolve(answer)
    thread.task = null
    thread.worker.unref()
    this.#endAfter(thread, this.#options.idleMs)
    this.#next()
  }

  #ended (thread: Thread<Answer>): void {
    this.#threads.delete(thread)
    clearTimeout(thread.timer)
    if (thread.task !== null) giveUp(thread.task, thread.error ?? new Error('the thread has ended'))
    this.#next()
  }

  #endAfter (thread: Thread<Answer>, ms: number): void {
    clearTimeout(thread.timer)
    thread.timer = setTimeout(() => {
      // A thread that is ending must not get more work.
      if (thread.task === null) this.#threads.delete(thread)
      thread.worker.terminate()
    }, ms).unref()
  }
}

/** What nobody wants is no trouble: at a reload, the threads of the app before end when its last caller has left. */
function giveUp <Answer> ({ isWanted, resolve, reject }: Task<Answer>, error: Error): void {
  if (isWanted()) reject(error)
  else resolve(null)
}
