/** What every suite works with: the mode, the mock upstream, and the targets that it starts. */
import type { ChildProcess } from 'node:child_process'
import { Callers } from './load/generators.js'
import { hasNginx, placement } from './machine.js'
import { startNginx } from './nginx.js'
import { announcedPort, endOf, forkPinned, NodeTarget, type StartOptions, type Target } from './target.js'
import type { UpstreamCounts } from './upstream.js'
import { makeWorks, type Work } from './work.js'

/**
 * Under load without pauses V8's memory reducer never runs. The pauses between windows call it, and it throws away with the objects of the
 * last request the shapes that compiled code relies on: the next ten thousand requests cost up to five times as much, of the larger
 * programs most. Off in every program whose cost under load is measured.
 */
const underLoad: readonly string[] = ['--no-memory-reducer']

export type Mode = 'quick' | 'full'

export interface Peer {
  readonly name: string
  readonly url: string
}

export class Upstream {
  readonly port: number
  readonly #child: ChildProcess

  private constructor (child: ChildProcess, port: number) {
    this.#child = child
    this.port = port
  }

  static async start (port: number): Promise<Upstream> {
    const child = forkPinned('upstream.js', placement.driver, { env: { BENCH_PORT: String(port) } })
    return new Upstream(child, await announcedPort(child, 'the mock upstream'))
  }

  get url (): string {
    return `http://127.0.0.1:${this.port}`
  }

  /**
   * `tick`: every held stream gets one event. `release`: all that remain. `poll`: until the next call, sockets are polled. `hang up`: all
   * connections are closed.
   */
  async tell (what: 'counts' | 'tick' | 'release' | 'poll' | 'hang up'): Promise<UpstreamCounts> {
    return await new Promise((resolve, reject) => {
      const ended = (): void => reject(new Error(`the mock upstream: ${endOf(this.#child)}`))
      if (endOf(this.#child) !== null) return ended()
      this.#child.once('exit', ended)
      this.#child.once('message', (message: { counts: UpstreamCounts }) => {
        this.#child.off('exit', ended)
        resolve(message.counts)
      })
      this.#child.send(what, error => { if (error !== null) reject(error) })
    })
  }

  stop (): void {
    if (this.#child.connected) this.#child.disconnect()
  }
}

export class Session {
  readonly mode: Mode
  readonly upstream: Upstream
  readonly peers: readonly Peer[]
  readonly works: ReadonlyMap<string, Work> = makeWorks()
  /** Windows in which other programs were busy: taken again, and kept because there had been too many of them. */
  readonly disturbed = { again: 0, kept: 0 }
  /** Peers that gave a wrong answer, and which: the run goes on without them. */
  readonly lost = new Map<string, string>()
  /** What is being measured, for a run that ends before its end. */
  stage = 'start'
  readonly #started = new Set<Target>()

  constructor (mode: Mode, upstream: Upstream, peers: readonly Peer[]) {
    this.mode = mode
    this.upstream = upstream
    this.peers = peers
  }

  pick<T> (values: Readonly<Record<Mode, T>>): T {
    return values[this.mode]
  }

  work (model: string): Work {
    const work = this.works.get(model)
    if (work === undefined) throw new Error(`the mock upstream has no work ${model}`)
    return work
  }

  /** Starts `servers/<server>.js` under a name of its own. Without `nodeOptions`, with those for load. */
  async start (name: string, server = name, { env = {}, nodeOptions = underLoad, ...rest }: StartOptions = {}): Promise<NodeTarget> {
    const options = { ...rest, nodeOptions, env: { BENCH_UPSTREAM: this.upstream.url, ...env } }
    const target = await NodeTarget.start(name, `servers/${server}.js`, options)
    this.#started.add(target)
    return target
  }

  /** nginx, or nothing where it is not installed. */
  async nginx (): Promise<Target[]> {
    if (!hasNginx) return []
    const target = await startNginx(this.upstream.url)
    this.#started.add(target)
    return [target]
  }

  /** Programs that run already: only what their callers see can be measured. */
  others (): Target[] {
    return this.peers.filter(peer => !this.lost.has(peer.name)).map(peer => this.#outside(peer.name, new URL(peer.url)))
  }

  /** The mock upstream without anything in front of it. */
  direct (): Target {
    return this.#outside('direct', new URL(this.upstream.url))
  }

  #outside (name: string, url: URL): Target {
    const callers = new Callers({ host: url.hostname, port: Number(url.port || 80) })
    const target = { name, callers, usage: async () => null, stop: async () => callers.close() }
    this.#started.add(target)
    return target
  }

  async stop (targets: Iterable<Target> = [...this.#started]): Promise<void> {
    for (const target of targets) {
      this.#started.delete(target)
      await target.stop()
    }
  }
}
