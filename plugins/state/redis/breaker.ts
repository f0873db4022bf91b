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

export interface Breaker {
  /** Rejects with StoreDownError, after `timeoutMs` at the latest, and at once while the store is known to be down. */
  readonly run: <T>(call: () => Promise<T>) => Promise<T>
  readonly close: () => void
}

/**
 * After one failure that is no answer, nothing is asked until a probe is answered: while the store hangs, only the first callers wait
 * `timeoutMs`, and commands do not pile up in its socket.
 */
export function createBreaker (options: BreakerOptions): Breaker {
  let down = false
  let closed = false
  let pending = 0
  /** The error that marked it as down. */
  let cause: unknown
  let timer: NodeJS.Timeout | undefined

  const probe = (): void => {
    if (closed) return
    timer = setTimeout(() => {
      within(options.timeoutMs, options.probe()).then(recovered, probe)
    }, options.probeEveryMs).unref()
  }
  const recovered = (): void => {
    if (closed) return
    down = false
    options.onRecovery()
  }
  const fail = (error: unknown): never => {
    const answer = options.answerOf(error)
    if (answer !== null) throw answer
    if (!down) probe()
    down = true
    cause = error
    throw error instanceof StoreDownError ? error : new StoreDownError('failed', { cause: error })
  }
  return {
    run: async (call) => {
      if (down) throw new StoreDownError('does not answer', { asked: false, cause: options.trouble() ?? cause })
      if (pending >= options.maxPending) throw new StoreDownError('is overloaded', { asked: false })
      pending += 1
      return await within(options.timeoutMs, call()).catch(fail).finally(() => { pending -= 1 })
    },
    close: () => {
      closed = true
      down = true
      clearTimeout(timer)
    },
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
