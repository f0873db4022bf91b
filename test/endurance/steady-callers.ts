/** Callers that ask every so often, whatever becomes of those before: what somebody else's trouble costs them. */
import { setTimeout as pause } from 'node:timers/promises'
import { createCaller, type Answer } from './caller.js'
import { quantile } from './processes.js'

export interface SteadyCallers {
  /** Asks no more, and has all answers. */
  readonly end: () => Promise<Readonly<Record<string, readonly Answer[]>>>
}

/** One for each group, by the secret of its key. */
export function steadyCallers (origin: string, secrets: Readonly<Record<string, string>>, everyMs: number): SteadyCallers {
  const { call, close } = createCaller(1_000)
  const over = new AbortController()
  const groups = Object.entries(secrets).map(async ([group, secret]) => {
    const running: Array<Promise<Answer>> = []
    const startedAt = performance.now()
    for (let i = 1; !over.signal.aborted; i += 1) {
      running.push(call(origin, { secret, tag: `${group}-${i}`, stream: i % 3 === 0 }))
      await pause(Math.max(0, startedAt + i * everyMs - performance.now()))
    }
    return [group, await Promise.all(running)] as const
  })
  return {
    end: async () => {
      over.abort()
      const answers = Object.fromEntries(await Promise.all(groups))
      await close()
      return answers
    },
  }
}

export interface Times {
  readonly requests: number
  readonly p50: number
  readonly p99: number
}

/** Of the requests that began then. */
export function timesOf (answers: readonly Answer[], from: number, to: number): Times {
  const ms = answers.filter(({ startedAt }) => startedAt >= from && startedAt < to).map((answer) => answer.ms)
  return { requests: ms.length, p50: quantile(ms, 0.5), p99: quantile(ms, 0.99) }
}

/** What was no whole reply. */
export function failuresOf (group: string, answers: readonly Answer[]): string[] {
  return answers.filter(({ status, whole }) => status !== 200 || !whole)
    .slice(0, 5)
    .map(({ status, error }) => `${group}: ${status} ${error}`)
}
