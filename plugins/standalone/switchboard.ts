import type { FastifyInstance } from 'fastify'
import type { Handler } from './front.js'
import type { RunningGateway } from './gateway.js'

/** The current app, and older ones that still finish their requests. */
export class Switchboard {
  #current: RunningGateway
  readonly #retired = new Set<RunningGateway>()

  constructor (first: RunningGateway) {
    this.#current = first
  }

  readonly handle: Handler = (request, response) => this.#current.app.routing(request, response)

  get app (): FastifyInstance {
    return this.#current.app
  }

  /** From now on requests go to `next`. The app before finishes its requests and is closed; `onError` hears if that fails. */
  replace (next: RunningGateway, onError: (error: unknown) => void): void {
    const old = this.#current
    this.#current = next
    this.#retired.add(old)
    old.retire()
    old.live.idle()
      .then(async () => await old.app.close())
      .catch(onError)
      .finally(() => this.#retired.delete(old))
  }

  /** Resolves once no app has a running request. */
  async idle (): Promise<void> {
    await Promise.all(this.#all().map(async ({ live }) => await live.idle()))
  }

  /** Marks what still runs as cut by this process. */
  cut (): void {
    for (const { live } of this.#all()) live.cut()
  }

  async close (): Promise<void> {
    await Promise.all(this.#all().map(async ({ app }) => await app.close()))
  }

  #all (): RunningGateway[] {
    return [this.#current, ...this.#retired]
  }
}
