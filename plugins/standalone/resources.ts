import { randomBytes } from 'node:crypto'
import type { FastifyBaseLogger } from 'fastify'
import { countTogether } from '../metrics/index.js'
import { openState, type State } from '../state/index.js'
import { simulates } from './bundle-options.js'
import type { GatewayConfig } from './config-types.js'
import { stateConfig } from './config-values.js'
import type { GatewayParts, LogStream } from './gateway.js'
import type { ProcessPeers } from './process-peers.js'
import { startSimulator, type Simulator } from './simulator.js'

/** What lives as long as the process, across reloads. */
export class Resources {
  /** Set when the process is to end. */
  draining = false
  /** Random, so that a console with its own port cannot be reached through the gateway's. */
  readonly consolePath = `/console-${randomBytes(16).toString('hex')}`
  readonly #cells = {}
  readonly #logStream: LogStream | undefined
  readonly #peers: ProcessPeers | undefined
  #simulator: Simulator | null = null
  #state: State | null = null

  constructor (logStream: LogStream | undefined, peers?: ProcessPeers) {
    this.#logStream = logStream
    this.#peers = peers
    if (peers !== undefined) countTogether(this.#cells, peers)
  }

  /** Opens what the configuration needs and is not open yet. */
  async provide (config: GatewayConfig): Promise<GatewayParts> {
    if (simulates(config)) this.#simulator ??= await startSimulator()
    this.#state ??= await openState(stateConfig(config))
    return {
      simulator: this.#simulator,
      state: this.#state,
      cells: this.#cells,
      peers: this.#peers,
      consolePath: this.consolePath,
      life: this,
      logStream: this.#logStream,
    }
  }

  /** Tells an operator what should be known at start. What the end of the process cuts short is done by the next one. */
  tell (log: FastifyBaseLogger): void {
    if (this.#state?.notice) log.warn(this.#state.notice)
    this.#state?.recovered.catch((err: unknown) => {
      if (!this.draining) log.error({ err }, 'usage records of killed processes cannot be read: some may not be charged')
    })
  }

  async close (): Promise<void> {
    await this.#state?.close()
    await this.#simulator?.close()
  }
}
