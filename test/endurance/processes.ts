/** Gateways as processes of their own, from the built program, that are killed and started again. */
import { spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { FileLedger } from '../../plugins/state/ledger/file-ledger.js'
import type { LedgerRecord } from '../../plugins/state/index.js'
import { program } from '../helpers/launch.js'

const preload = new URL('acknowledge.js', import.meta.url).href

/** What every run tells: figures of its own, and each rule that was broken. */
export interface Report {
  /** Empty where everything held. */
  readonly violations: string[]
  /** Times that a quiet machine keeps, and a busy one may not. */
  readonly slow: string[]
  readonly [figure: string]: unknown
}

export interface Folder {
  readonly path: string
  readonly remove: () => void
}

export function temporaryFolder (): Folder {
  const path = mkdtempSync(join(tmpdir(), 'llm-gateway-endurance-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

export interface GatewayProcess {
  readonly origin: string
  readonly pid: number
  /** From its spawning until it said that it listens. */
  readonly listensMs: number
  /** Ids of the records that it acknowledged so far. */
  readonly acknowledged: () => string[]
  readonly kill: (signal?: NodeJS.Signals) => Promise<void>
  /** From now on nobody reads what it prints. */
  readonly stopReading: () => void
}

let launched = 0

/**
 * `config` as `gateway.yaml` has it, but where it does not say so, nobody is refused for a late event loop: the machine may be busy with
 * other tests. Rejects with what the program printed where it ends before it listens.
 */
export async function launchGateway (
  folder: string, config: object, port = 0, env: Readonly<Record<string, string>> = {}
): Promise<GatewayProcess> {
  launched += 1
  const name = join(folder, `gateway-${launched}`)
  writeFileSync(`${name}.yaml`, JSON.stringify({ log: { level: 'error' }, overload: { maxLoopDelayMs: 0 }, ...config }))
  const notes = openSync(`${name}.acknowledged`, 'a')
  const startedAt = performance.now()
  // Through `env -i`: the test runner would put its own loader into the process.
  const variables = Object.entries(env).map(([variable, value]) => `${variable}=${value}`)
  const args = [
    '-i', `PATH=${process.env['PATH']}`, `PORT=${port}`, ...variables, process.execPath, '--import', preload, program, 'start', '--config',
    `${name}.yaml`,
  ]
  const child = spawn('/usr/bin/env', args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe', notes] })
  closeSync(notes)
  const printed: string[] = []
  onLine(child.stderr, (line) => printed.push(line))
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const endWithUs = (): void => { child.kill('SIGKILL') }
  process.once('exit', endWithUs)
  const origin = await new Promise<string>((resolve, reject) => {
    onLine(child.stdout, (line) => {
      const found = /^llm-gateway listens on (.*)$/.exec(line)
      if (found !== null) resolve(String(found[1]))
      else if (line.startsWith('{')) printed.push(line)
    })
    exited.then(() => reject(new Error(`the gateway ended: ${printed.join('\n')}`)))
  })
  return {
    origin,
    pid: Number(child.pid),
    listensMs: performance.now() - startedAt,
    acknowledged: () => readFileSync(`${name}.acknowledged`, 'utf8').split('\n').slice(0, -1),
    stopReading: () => { child.stdout?.pause() },
    kill: async (signal = 'SIGKILL') => {
      process.off('exit', endWithUs)
      child.kill(signal)
      await exited
    },
  }
}

function onLine (input: Readable | null, listener: (line: string) => void): void {
  if (input !== null) createInterface({ input }).on('line', listener)
}

/** Everything in a ledger's folder, and how many lines are no whole record. */
export async function ledgerIn (path: string, from = 0): Promise<{ records: LedgerRecord[], damaged: number }> {
  const records: LedgerRecord[] = []
  let damaged = 0
  for await (const record of new FileLedger(path).read({ from, onDamage: () => { damaged += 1 } })) records.push(record)
  return { records, damaged }
}

/** What a process holds in memory now. */
export function residentMb (pid: number): number {
  return Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024)
}

export function sum (numbers: Iterable<number>): number {
  return [...numbers].reduce((total, number) => total + number, 0)
}

/** The value below which a share `q` of them lies, 0 of none. */
export function quantile (numbers: readonly number[], q: number): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  return Math.round((sorted[Math.ceil(sorted.length * q) - 1] ?? 0) * 10) / 10
}

/** Asks until the answer is yes; false where it is not within `forMs`. */
export async function eventually (ask: () => Promise<boolean>, forMs = 60_000): Promise<boolean> {
  const until = performance.now() + forMs
  while (performance.now() < until) {
    if (await ask().catch(() => false)) return true
    await pause(20)
  }
  return false
}
