import type { Io, SignalName } from '../../bin/io.js'
import { run } from '../../bin/cli.js'
import { Signal } from '../helpers/upstream.js'

/** A process's surroundings that a test can read. */
export interface Terminal extends Io {
  readonly shown: Signal<string>
  readonly complaints: string[]
  readonly logged: Signal<string>
  readonly send: (signal: SignalName) => void
  /** Codes that the process was to end with at once. */
  readonly exits: number[]
}

export function terminal (env: Record<string, string> = {}): Terminal {
  const [shown, logged] = [new Signal<string>(), new Signal<string>()]
  const complaints: string[] = []
  const exits: number[] = []
  const listeners = new Map<SignalName, () => void>()
  return {
    env,
    out: (line) => shown.push(line),
    err: (line) => complaints.push(line),
    progress: null,
    onSignal: (signal, listener) => listeners.set(signal, listener),
    logStream: { write: (line) => logged.push(line) },
    shown,
    complaints,
    logged,
    send: (signal) => listeners.get(signal)?.(),
    exits,
    exit: (code) => exits.push(code),
  }
}

export interface Outcome {
  readonly code: number
  readonly out: string[]
  readonly err: string
}

/** Runs a command to its end. */
export async function command (...args: string[]): Promise<Outcome> {
  const out: string[] = []
  const io = terminal()
  const code = await run(args, { ...io, out: (line) => out.push(line) })
  return { code, out, err: io.complaints.join('\n') }
}
