import { readTime } from '../plugins/core/config/read-time.js'
import type { Environment } from '../plugins/standalone/config-yaml.js'
import type { LogStream } from '../plugins/standalone/gateway.js'
import type { Channel } from '../plugins/standalone/workers/worker.js'

export type SignalName = 'SIGHUP' | 'SIGINT' | 'SIGTERM'

/** What a command uses of its process. */
export interface Io {
  readonly env: Environment
  /** Prints a line of the result. Returns a promise if the reader is slow: await it before the next line. */
  readonly out: (line: string) => unknown
  /** Prints a line about a failure. */
  readonly err: (line: string) => void
  /** Text for a terminal; null if there is none. */
  readonly progress: ((text: string) => void) | null
  readonly onSignal: (signal: SignalName, listener: () => void) => void
  /** Ends the process at once, whatever runs. */
  readonly exit: (code: number) => void
  /** Where log lines go; default stdout. */
  readonly logStream?: LogStream
  /** Null or undefined: this process is no worker. */
  readonly primary?: Channel | null
}

/** The command line is wrong: the message says why. */
export class UsageError extends Error {}

/** The command cannot be carried out: the message says why. */
export class CommandError extends Error {}

/** One command. `file` is the configuration's, `args` follow the command. Resolves with the exit code. */
export type Command = (file: string, args: string[], io: Io) => Promise<number>

/** Milliseconds since the epoch of a date on the command line, null for none. Throws UsageError. */
export function readDate (option: string, text: string | undefined): number | null {
  if (text === undefined) return null
  const time = readTime(text)
  if (Number.isNaN(time)) throw new UsageError(`${option} must be a date such as 2027-01-01 or 2027-01-01T00:00:00Z, not ${text}`)
  return time
}

/** A whole number of at least `least`, or undefined for none. Throws UsageError. */
export function readCount (option: string, text: string | undefined, least: number): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,15}$/.test(text) && Number(text) >= least) return Number(text)
  throw new UsageError(`${option} must be a whole number of at least ${least}, not ${text}`)
}
