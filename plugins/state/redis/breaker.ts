import { StoreDownError } from '../../core/balances/store-down.js'

export interface BreakerOptions {
  readonly timeoutMs: number
  /** Calls that may wait at the same time; one more fails at once. */
  readonly maxPending: number
  readonly probeEveryMs: number
  /** What to tell of an error that is the store's answer: it is there, and may answer others otherwise. Null for any other error. */
  readonly answerOf: (error: unknown) => StoreDownError | null
  /** Asks the store for anything; resolves when it answers. */
  readonly probe: () => Promise<unknown>
  /** The store answers again after it did not. */
  readonly onRecovery: () => void
}

export interface Breaker {
  /** Rejects with StoreDownError, after `timeoutMs` at the latest and at once while the store is known to be down. */
  readonly run: <T>(call: () => Promise<T>) => Promise<T>
  readonly close: () => void
}

/**
 * One failure that is no answer stops the asking until a probe is answered: while the store hangs, callers lose `timeoutMs` once
 * and not each, and commands do not pile up in its socket.
 */
export function createBreaker (options: BreakerOptions): Breaker {
  let down = false
  let closed = false
  let pending = 0
  /** Why it is down. */
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
      if (down) throw new StoreDownError('does not answer', { asked: false, cause })
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
 * The time is up only after one more look at the sockets: a process that was busy itself would otherwise blame a store
 * whose answer has long arrived.
 */
async function within<T> (timeoutMs: number, call: Promise<T>): Promise<T> {
  return await new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => {
      setImmediate(() => reject(new StoreDownError(`did not answer within ${timeoutMs} ms`)))
    }, timeoutMs)
    call.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
