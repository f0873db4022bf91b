import { simulates } from './bundle-options.js'
import type { GatewayConfig } from './config-types.js'
import type { GatewayParts, LogStream } from './gateway.js'
import { startSimulator, type Simulator } from './simulator.js'

/** What lives as long as the process, whatever the configuration becomes. */
export class Resources {
  /** Set once the process is to end. */
  draining = false
  readonly #cells = {}
  readonly #logStream: LogStream | undefined
  #simulator: Simulator | null = null

  constructor (logStream: LogStream | undefined) {
    this.#logStream = logStream
  }

  /** Opens what the configuration needs and is not there yet. */
  async provide (config: GatewayConfig): Promise<GatewayParts> {
    if (simulates(config)) this.#simulator ??= await startSimulator()
    return {
      simulator: this.#simulator,
      cells: this.#cells,
      life: this,
      ...this.#logStream && { logStream: this.#logStream },
    }
  }

  async close (): Promise<void> {
    await this.#simulator?.close()
  }
}
