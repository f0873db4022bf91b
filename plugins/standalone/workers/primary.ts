/**
 * The process that holds the port and the sums, and leaves everything else to its workers. Node closes the port with the last of the
 * workers (lib/internal/cluster/round_robin_handle.js of Node 20 to 24), and opens it again for the next one.
 */
import cluster, { type Worker } from 'node:cluster'
import { setMaxListeners } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { longestTimerMs } from '../../core/with-timeout.js'
import type { Environment } from '../config-yaml.js'
import { refusalLines } from '../config.js'
import type { ListenAddress } from '../config-values.js'
import { closeWithWorker } from './handed-connections.js'
import { tell, type FromWorker } from './messages.js'
import { readEdition, type ReadEdition } from './read-edition.js'
import { Rollout } from './rollout.js'
import { Sums } from './sums.js'
import { unblockOutput } from './unblocked-output.js'

interface PrimaryOptions {
  readonly file: string
  readonly env: Environment
  readonly workers: number
  readonly log: FastifyBaseLogger
  /** A worker that does not answer a reload within this time is replaced. Default 60,000. */
  readonly answerMs?: number
  /** A worker that is to end is killed this long after the time that its requests may take. Default 5,000. */
  readonly closingMs?: number
  /** What a worker runs. Default: what this process runs. */
  readonly program?: { readonly exec: string, readonly args: readonly string[], readonly execArgv: readonly string[] }
}

/** A worker that lived this long started without trouble. */
const soundMs = 1_000
const firstRetryMs = 100
const lastRetryMs = 10_000
/** For records, connections and the log. */
const defaultClosingMs = 5_000

export class Primary {
  readonly #options: PrimaryOptions
  /** All that were started and have not ended. */
  readonly #all = new Set<Worker>()
  /** Those that listen, and since when. */
  readonly #ready = new Map<Worker, number>()
  readonly #sums = new Sums(() => this.#ready.keys())
  readonly #rollout: Rollout
  /** How long requests may still run at the end: read only at start, as in the workers. */
  readonly #graceMs: number
  /** Read last, even if refused: a wrong price list of it may be corrected. */
  #newest: ReadEdition
  #failures = 0
  readonly #end = new AbortController()
  #turn: Promise<unknown> = Promise.resolve()
  address: ListenAddress = { host: '', port: 0 }
  consoleAddress: ListenAddress | null = null

  private constructor (options: PrimaryOptions, first: ReadEdition) {
    this.#options = options
    this.#newest = first
    this.#graceMs = first.graceMs
    // As many listeners as there are workers may wait for it.
    setMaxListeners(0, this.#end.signal)
    this.#rollout = new Rollout(first, () => this.#ready.keys(), options.answerMs)
  }

  /** Resolves once every worker listens. Rejects with ConfigError or with the failure of the first worker; none is left then. */
  static async start (options: PrimaryOptions): Promise<Primary> {
    const primary = new Primary(options, readEdition(options))
    const { program } = options
    if (program !== undefined) cluster.setupPrimary({ exec: program.exec, args: [...program.args], execArgv: [...program.execArgv] })
    try {
      await Promise.all(Array.from({ length: options.workers }, async () => await primary.#begin()))
    } catch (error) {
      primary.#end.abort()
      primary.kill()
      throw error
    }
    return primary
  }

  get #stopping (): boolean {
    return this.#end.signal.aborted
  }

  get pids (): readonly number[] {
    return [...this.#ready.keys()].map(({ process: { pid } }) => Number(pid))
  }

  /** The price lists that the file names. */
  get priceFiles (): readonly string[] {
    return this.#newest.priceFiles
  }

  /** Makes one worker after the other take the current file. False if it is not valid; everything stays as it was. */
  async reload (): Promise<boolean> {
    const reloaded = this.#turn.then(async () => await this.#reload())
    this.#turn = reloaded
    return await reloaded
  }

  async #reload (): Promise<boolean> {
    const { file, log } = this.#options
    try {
      this.#newest = readEdition(this.#options)
      return await this.#rollout.replace(this.#newest)
    } catch (error) {
      log.error({ problems: refusalLines(error, file) }, 'configuration refused, the old one stays')
      return false
    }
  }

  /** All workers end at the same time, each after its requests; one that does not end is killed. */
  async stop (): Promise<void> {
    this.#end.abort()
    const { closingMs = defaultClosingMs } = this.#options
    const late = setTimeout(() => this.#killLate(), Math.min(this.#graceMs + this.#newest.drainMs + closingMs, longestTimerMs))
    await Promise.all([...this.#all].map(async (worker) => {
      const ended = new Promise((resolve) => worker.once('exit', resolve))
      tell(worker, { type: 'stop' })
      await ended
    }))
    clearTimeout(late)
  }

  /** Kills workers that have not ended, so that they do not delay the end. */
  #killLate (): void {
    const workers = [...this.#all].map(({ process: { pid } }) => pid)
    this.#options.log.error({ workers }, 'these workers did not end in time: they are killed')
    this.kill()
  }

  /** Kills all at once, whatever runs. */
  kill (): void {
    for (const worker of this.#all) worker.process.kill('SIGKILL')
  }

  async #begin (): Promise<void> {
    const worker = cluster.fork()
    unblockOutput(worker, process.stdout)
    this.#all.add(worker)
    closeWithWorker(worker)
    await new Promise<void>((resolve, reject) => {
      const ended = (why: string | number): void => {
        reject(new Error(`a worker ended before it listened (${why})`))
        this.#ended(worker, why)
      }
      worker.on('message', (message: FromWorker) => {
        if (message.type === 'failed') reject(new Error(message.message))
        else if (message.type === 'ready') {
          this.address = message.address
          this.consoleAddress = message.consoleAddress
          this.#joined(worker)
          resolve()
        } else this.#hear(worker, message)
      })
      worker.once('exit', (code, signal) => ended(signal ?? code))
      // A process that could not be forked emits only this, and an unhandled error ends the process.
      worker.on('error', ({ message }) => { if (worker.process.pid === undefined) ended(message) })
    })
  }

  #joined (worker: Worker): void {
    this.#ready.set(worker, Date.now())
    // The configuration may have changed while it started.
    if (this.#rollout.isBehind(worker)) this.#turn = this.#turn.then(async () => await this.#rollout.catchUp())
  }

  #hear (worker: Worker, message: Exclude<FromWorker, { type: 'failed' | 'ready' }>): void {
    // A worker that was not listening yet when all were told to stop has missed it.
    if (message.type === 'asks to start' && this.#stopping) tell(worker, { type: 'stop' })
    else if (message.type === 'asks to start') this.#rollout.begin(worker)
    else if (message.type === 'reloaded') this.#rollout.answered(worker, message.ok)
    else this.#sums.hear(worker, message)
  }

  #ended (worker: Worker, why: string | number): void {
    const readyAt = this.#ready.get(worker)
    this.#all.delete(worker)
    this.#ready.delete(worker)
    this.#sums.ended(worker)
    this.#rollout.ended(worker)
    if (this.#stopping) return
    const lived = readyAt !== undefined && Date.now() - readyAt >= soundMs
    this.#failures = lived ? 0 : this.#failures + 1
    const waitMs = lived ? 0 : Math.min(firstRetryMs * 2 ** (this.#failures - 1), lastRetryMs)
    // `pid` is the primary's own: some log stores refuse a line with the same name twice.
    this.#options.log.error({ worker: worker.process.pid, why, waitMs }, 'a worker ended, another one takes its place')
    pause(waitMs, undefined, { signal: this.#end.signal }).then(() => this.#replace(), () => {})
  }

  #replace (): void {
    const { log } = this.#options
    this.#begin().then(() => log.warn('a worker serves in the place of the one that ended'), (error) => {
      if (!this.#stopping) log.error({ err: error }, 'a worker did not start')
    })
  }
}
