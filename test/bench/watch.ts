/** No run ends without a word: whatever ends it early is named, with what was being measured. */
import { constants } from 'node:os'
import type { Session } from './session.js'

const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/** Until the returned function is called, a signal or an event loop that ran empty is reported before the process ends. */
export function watch (session: Session): () => void {
  const startedAt = performance.now()
  const report = (what: string): void => {
    console.error(`\nBROKEN OFF in "${session.stage}" after ${Math.round((performance.now() - startedAt) / 1000)} s: ${what}`)
  }
  const ended = (signal: typeof signals[number]): void => {
    settled()
    report(`${signal} from outside`)
    const exit = (): void => process.exit(128 + constants.signals[signal])
    session.stop().then(exit, exit)
  }
  const exited = (code: number): void => report(`nothing was left to wait for (exit code ${code})`)
  const settled = (): void => {
    for (const signal of signals) process.off(signal, ended)
    process.off('exit', exited)
  }
  for (const signal of signals) process.on(signal, ended)
  process.on('exit', exited)
  return settled
}
