/** The gateway as a process: one port, the current app behind it, reloads, and an end that cuts no stream. */
import { setTimeout as pause } from 'node:timers/promises'
import { gatewayOf } from '../core/gateway.js'
import type { GatewayConfig } from './config-types.js'
import type { Environment } from './config-yaml.js'
import { ConfigError } from './config-error.js'
import { loadConfig, readServedText, refusalLines, withFileLines } from './config.js'
import { graceOf, listenAddress, type ListenAddress } from './config-values.js'
import type { ProcessPeers } from './process-peers.js'
import { openFronts, type Fronts } from './fronts.js'
import { createGateway, type LogStream } from './gateway.js'
import { asStarted, waitsForRestart } from './read-at-start.js'
import { Resources } from './resources.js'
import { Switchboard } from './switchboard.js'
import { mistakesOf } from './trial.js'

interface StandaloneOptions {
  readonly file: string
  readonly env: Environment
  /** Where log lines go; default stdout. */
  readonly logStream?: LogStream | undefined
  /** Reads the text of the file, if another process provides it. Throws ConfigError. Default: from the file. */
  readonly text?: () => string
  /**
   * Text of the file when the gateway began, if this process begins later: the source of what is read at start. Default: the current text.
   */
  readonly firstText?: string
  /** Processes that count together with this one. */
  readonly peers?: ProcessPeers
}

function textOf ({ file, text }: StandaloneOptions): string {
  return text?.() ?? readServedText(file)
}

interface Begun {
  /** The configuration of when the gateway began. */
  readonly first: GatewayConfig
  readonly config: GatewayConfig
}

function readBegun (options: StandaloneOptions): Begun {
  const { file, env } = options
  const text = textOf(options)
  const { firstText = text } = options
  const first = loadConfig(file, env, firstText)
  // Not read twice if it is the same: a large one takes a while.
  return { first, config: text === firstText ? first : asStarted(loadConfig(file, env, text), first) }
}

export class Standalone {
  /** The configuration of when the gateway began. */
  readonly config: GatewayConfig
  readonly address: ListenAddress
  /** Null if the console has no port of its own. */
  readonly consoleAddress: ListenAddress | null
  readonly #options: StandaloneOptions
  readonly #resources: Resources
  readonly #switchboard: Switchboard
  readonly #fronts: Fronts
  readonly #hurry = new AbortController()
  #priceFiles: readonly string[]
  #turn: Promise<unknown> = Promise.resolve()
  #end: Promise<void> | null = null

  private constructor (options: StandaloneOptions, { first, config }: Begun, parts: readonly [Resources, Switchboard, Fronts]) {
    this.#options = options
    this.config = first
    this.#priceFiles = config.prices?.files ?? []
    ;[this.#resources, this.#switchboard, this.#fronts] = parts
    this.address = this.#fronts.address
    this.consoleAddress = this.#fronts.consoleAddress
  }

  /** Throws ConfigError, an option error of a plugin, or Node's error if the address is taken; nothing is left open then. */
  static async start (options: StandaloneOptions): Promise<Standalone> {
    const { first, config } = readBegun(options)
    const wanted = listenAddress(first, options.env)
    const resources = new Resources(options.logStream, options.peers)
    let switchboard: Switchboard | null = null
    try {
      const board = new Switchboard(await createGateway(config, await resources.provide(config)))
      switchboard = board
      const dropped = (): void => gatewayOf(board.app).recorder.shed('connections')
      const fronts = await openFronts(first, wanted, board.handle, resources.consolePath, dropped)
      resources.tell(board.app.log)
      return new Standalone(options, { first, config }, [resources, switchboard, fronts])
    } catch (error) {
      await switchboard?.close()
      await resources.close()
      throw error
    }
  }

  /** The price lists that the file names. */
  get priceFiles (): readonly string[] {
    return this.#priceFiles
  }

  /** Reads the file again. False if it is not valid; everything stays as it was. One reload at a time. */
  async reload (): Promise<boolean> {
    const reloaded = this.#turn.then(async () => await this.#reload())
    this.#turn = reloaded
    return await reloaded
  }

  async #reload (): Promise<boolean> {
    const { log } = this.#switchboard.app
    if (this.#end !== null) return false
    const { file, env } = this.#options
    try {
      const config = loadConfig(file, env, textOf(this.#options))
      this.#priceFiles = config.prices?.files ?? []
      const fixed = waitsForRestart(config, this.config)
      // Nobody would look at it before the restart, which it would fail.
      const mistakes = fixed.length === 0 ? [] : await mistakesOf(config)
      if (mistakes.length > 0) throw withFileLines(new ConfigError(mistakes), file)
      const next = await createGateway(asStarted(config, this.config), await this.#resources.provide(config))
      if (fixed.length > 0) log.warn({ sections: fixed }, 'these sections are read at start only: restart to use their new values')
      this.#switchboard.replace(next, (error) => log.error({ err: error }, 'the app of the configuration before could not be closed'))
      this.#fronts.waitFor(config)
      log.info('configuration reloaded')
      return true
    } catch (error) {
      log.error({ problems: refusalLines(error, file) }, 'configuration refused, the old one stays')
      return false
    }
  }

  /**
   * Ends the gateway: new model requests are refused, running ones may finish within `listen.shutdownGraceMs`. A second call waits for no
   * caller any more; the usage of cut replies is still read, within `forward.drain`.
   */
  async stop (): Promise<void> {
    if (this.#end === null) this.#end = this.#stop()
    else this.#hurry.abort()
    await this.#end
  }

  async #stop (): Promise<void> {
    await this.#turn
    this.#resources.draining = true
    const grace = pause(graceOf(this.config), undefined, { signal: this.#hurry.signal }).catch(() => {})
    await Promise.race([this.#switchboard.idle(), grace])
    this.#hurry.abort()
    this.#switchboard.cut()
    await this.#fronts.close()
    await this.#switchboard.close()
    await this.#resources.close()
  }
}
