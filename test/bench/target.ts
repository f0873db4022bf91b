/** A program under test in a process of its own: started pinned, asked for its cost, stopped by its id. */
import { spawn, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Callers, type Address } from './load/generators.js'
import { placement } from './machine.js'
import type { Question, Usage } from './servers/serve.js'

export interface Target {
  readonly name: string
  readonly callers: Callers
  /** Null where the process is not ours to look into. */
  usage: () => Promise<Usage | null>
  stop: () => Promise<void>
  /** How the process ended, null while it runs. */
  end?: () => string | null
}

export interface StartOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly nodeOptions?: readonly string[]
  /** On any core instead of the one for programs under test. */
  readonly anywhere?: boolean
}

interface Waiting {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

/** One of our own server files, forked with a channel to ask it questions. */
export class NodeTarget implements Target {
  readonly name: string
  readonly callers: Callers
  /** Milliseconds from the spawn to the announcement that it listens. */
  readonly startMs: number
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, Waiting>()
  #asked = 0

  private constructor (name: string, child: ChildProcess, address: Address, startMs: number) {
    this.name = name
    this.callers = new Callers(address)
    this.startMs = startMs
    this.#child = child
    child.on('message', message => this.#answered(message))
    child.on('exit', () => { for (const { reject } of this.#waiting.values()) reject(new Error(`${name}: ${endOf(child)}`)) })
    child.on('error', error => { for (const { reject } of this.#waiting.values()) reject(error) })
  }

  static async start (
    name: string, script: string, { env = {}, nodeOptions = [], anywhere = false }: StartOptions = {}
  ): Promise<NodeTarget> {
    const startedAt = performance.now()
    const child = forkPinned(script, anywhere ? null : placement.server, { env, nodeOptions })
    const port = await announcedPort(child, name)
    return new NodeTarget(name, child, { host: '127.0.0.1', port }, performance.now() - startedAt)
  }

  ask (ask: Question['ask']): Promise<unknown> {
    const id = ++this.#asked
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#child.send({ id, ask } satisfies Question, error => { if (error !== null) reject(error) })
    })
  }

  async usage (): Promise<Usage> {
    return asUsage(await this.ask('usage'))
  }

  /** Memory after the garbage is gone; needs `--expose-gc`. */
  async collected (): Promise<Usage> {
    return asUsage(await this.ask('collect'))
  }

  async stop (): Promise<void> {
    this.callers.close()
    if (this.end() !== null) return
    const gone = new Promise(resolve => this.#child.once('exit', resolve))
    this.#child.disconnect()
    await gone
  }

  end (): string | null {
    return endOf(this.#child)
  }

  #answered (message: unknown): void {
    if (typeof message !== 'object' || message === null || !('id' in message)) return
    const waiting = this.#waiting.get(Number(message.id))
    this.#waiting.delete(Number(message.id))
    if ('error' in message) waiting?.reject(new Error(String(message.error)))
    else waiting?.resolve('value' in message ? message.value : undefined)
  }
}

function asUsage (value: unknown): Usage {
  if (typeof value === 'object' && value !== null && 'cpuUs' in value && 'rssBytes' in value && 'peakRssBytes' in value &&
    'markCompacts' in value) {
    return {
      cpuUs: Number(value.cpuUs),
      rssBytes: Number(value.rssBytes),
      peakRssBytes: Number(value.peakRssBytes),
      markCompacts: Number(value.markCompacts),
    }
  }
  throw new Error('the target did not tell its usage')
}

export function endOf ({ exitCode, signalCode }: ChildProcess): string | null {
  if (signalCode !== null) return `its process was ended by ${signalCode}`
  return exitCode === null ? null : `its process ended with code ${exitCode}`
}

/** Node on a file of this folder, on the given core where cores can be chosen. */
export function forkPinned (script: string, core: number | null, { env = {}, nodeOptions = [] }: StartOptions = {}): ChildProcess {
  const file = fileURLToPath(new URL(script, import.meta.url))
  const [program, ...before] = core === null ? [process.execPath] : ['taskset', '-c', String(core), process.execPath]
  return spawn(program ?? process.execPath, [...before, ...nodeOptions, file], {
    env: { ...process.env, NODE_ENV: 'production', ...env },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
}

export async function announcedPort (child: ChildProcess, name: string): Promise<number> {
  return await new Promise((resolve, reject) => {
    child.once('exit', () => reject(new Error(`${name} did not listen: ${endOf(child)}`)))
    child.once('error', error => reject(new Error(`${name} did not start: ${error.message}`)))
    child.once('message', message => {
      if (typeof message === 'object' && message !== null && 'port' in message) resolve(Number(message.port))
      else reject(new Error(`${name} did not announce a port`))
    })
  })
}
