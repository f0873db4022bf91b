/** Programs as processes of their own: what they print, how they end. */
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Signal } from './upstream.js'

/** The built gateway; `npm test` builds it first. */
export const program = new URL('../../dist/bin/llm-gateway.js', import.meta.url).pathname

export interface Child {
  readonly process: ChildProcess
  /** Lines of stdout. */
  readonly out: Signal<string>
  /** Lines of stderr. */
  readonly err: string[]
  /** The exit code, once all output is read; null after a signal. */
  readonly exited: Promise<number | null>
}

interface Scope {
  teardown: (end: () => Promise<void>) => unknown
}

/**
 * The command line of a program that has nothing but `env` in its environment: through `env -i`, because the test runner puts its own
 * loader into every child's, which is slow and measures the build beside its sources.
 */
export function cleanly (command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): [string, string[]] {
  const variables = Object.entries({ PATH: String(process.env['PATH']), ...env }).map(([name, value]) => `${name}=${value}`)
  return ['/usr/bin/env', ['-i', ...variables, command, ...args]]
}

/** Runs a Node script, or what Node's own options say, with nothing but `env` in its environment. `t` kills it. */
export function launch (
  t: Scope, script: string, args: readonly string[], env: Readonly<Record<string, string>> = {}, cwd?: string
): Child {
  if (!script.startsWith('-') && !existsSync(script)) throw new Error(`${script} is not there: npm run build writes it`)
  const child = spawn(...cleanly(process.execPath, [script, ...args], env), { stdio: ['ignore', 'pipe', 'pipe'], cwd })
  const out = new Signal<string>()
  const err: string[] = []
  createInterface(child.stdout).on('line', (line) => out.push(line))
  createInterface(child.stderr).on('line', (line) => err.push(line))
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve))
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exited
  })
  return { process: child, out, err, exited }
}

/** The first line that matches, dropping those before it. */
export async function until (lines: Signal<string>, pattern: RegExp): Promise<RegExpExecArray> {
  for (;;) {
    const found = pattern.exec(await lines.next())
    if (found !== null) return found
  }
}

/** The address that a gateway tells when it is up. Rejects where it ends before. */
export async function originOf ({ out, err, exited }: Child): Promise<string> {
  const early = exited.then((code) => { throw new Error(`it ended with ${code}: ${err.join('\n')}`) })
  return String((await Promise.race([until(out, /^llm-gateway listens on (.*)$/), early]))[1])
}
