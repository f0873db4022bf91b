import { StoreDownError } from '../../core/balances/store-down.js'
import { drainTimer } from '../drain-timer.js'

interface Turns {
  /** Runs with all others of this turn of the event loop. */
  readonly soon: <T>(step: () => T) => Promise<T>
  /** Runs with the next turn that somebody waits for, or after a few milliseconds. */
  readonly later: <T>(step: () => T) => Promise<T>
}

interface Waiting {
  readonly run: () => () => void
  readonly reject: (error: unknown) => void
}

/** Runs many steps inside one transaction, in their order. A step that throws fails alone; a transaction that fails, fails them all. */
export function inTurns (transaction: (work: () => void) => void): Turns {
  let waiting: Waiting[] = []
  const drain = (): void => {
    const turn = waiting
    waiting = []
    let answers: Array<() => void> = []
    try {
      transaction(() => { answers = turn.map(({ run }) => run()) })
    } catch (error) {
      answers = turn.map(({ reject }) => () => reject(error))
    }
    for (const answer of answers) answer()
  }
  const timer = drainTimer(drain)
  // The promise itself is returned, here and below: each further one would cost a request as much as its step.
  const wait = <T>(step: () => T): Promise<T> => new Promise<T>((resolve, reject) => {
    const run = (): (() => void) => {
      try {
        const value = step()
        return () => resolve(value)
      } catch (cause) {
        return () => reject(cause instanceof StoreDownError ? cause : new StoreDownError('failed', { refused: true, cause }))
      }
    }
    waiting.push({ run, reject })
  })
  return {
    soon: (step) => {
      timer.soon()
      return wait(step)
    },
    later: (step) => {
      timer.later()
      return wait(step)
    },
  }
}
