import { StoreDownError } from '../../core/balances/store-down.js'

interface BreakerOptions {
  readonly timeoutMs: number
  /** Maximum number of calls that wait at the same time; one more fails at once. */
  readonly maxPending: number
  readonly probeEveryMs: number
  /** The error to report if `error` is an answer of the store: it is there, and may answer others differently. Null for any other error. */
  readonly answerOf: (error: unknown) => StoreDownError | null
  /** Asks the store for anything; resolves when it answers. */
  readonly probe: () => Promise<unknown>
  /** What is wrong with the connection, if that is known: once it is cut, a command only says that it cannot be written. */
  readonly trouble: () => Error | null
  /** Called when the store answers again after it did not. */
  readonly onRecovery: () => void
}

/**
 * After one failure that is no answer, nothing is asked until a probe is answered: while the store hangs, only the first callers wait
 * `timeoutMs`, and commands do not pile up in its socket.
 */
export class Breaker {
  readonly #options: BreakerOptions
  #isDown = false
  #isClosed = false
  #pending = 0
  /** The error that marked it as down. */
  #cause: unknown
  #timer: NodeJS.Timeout | undefined

  constructor (options: BreakerOptions) {
    this.#options = options
  }

  /** Rejects with StoreDownError, after `timeoutMs` at the latest, and at once while the store is known to be down. */
  async run<T> (call: () => Promise<T>): Promise<T> {
    const { timeoutMs, maxPending, trouble } = this.#options
    if (this.#isDown) throw new StoreDownError('does not answer', { asked: false, cause: trouble() ?? this.#cause })
    if (this.#pending >= maxPending) throw new StoreDownError('is overloaded', { asked: false })
    this.#pending += 1
    return await within(timeoutMs, call()).catch(this.#fail).finally(() => { this.#pending -= 1 })
  }

  close (): void {
    this.#isClosed = true
    this.#isDown = true
    clearTimeout(this.#timer)
  }

  readonly #fail = (error: unknown): never => {
    const answer = this.#options.answerOf(error)
    if (answer !== null) throw answer
    if (!this.#isDown) this.#probe()
    this.#isDown = true
    this.#cause = error
    throw error instanceof StoreDownError ? error : new StoreDownError('failed', { cause: error })
  }

  #probe (): void {
    if (this.#isClosed) return
    const { timeoutMs, probe, probeEveryMs } = this.#options
    this.#timer = setTimeout(() => {
      within(timeoutMs, probe()).then(() => this.#recovered(), () => this.#probe())
    }, probeEveryMs).unref()
  }

  #recovered (): void {
    if (this.#isClosed) return
    this.#isDown = false
    this.#options.onRecovery()
  }
}

/**
 * Times out only after one more look at the sockets: otherwise a process that was busy itself would blame a store whose answer has long
 * arrived.
 */
async function within<T> (timeoutMs: number, call: Promise<T>): Promise<T> {
  return await new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => {
      setImmediate(() => reject(new StoreDownError(`did not answer within ${timeoutMs} ms`)))
    }, timeoutMs)
    call.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
