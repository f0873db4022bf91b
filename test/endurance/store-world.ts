/** Gateways that share one Redis, keys that only Redis knows, and steady callers: what a store's trouble is measured on. */
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createKey } from '../../plugins/standalone/issued-keys.js'
import { openState, type Limits, type State } from '../../plugins/state/index.js'
import { startRedis, type RedisServer } from '../state/redis/server.js'
import { createCaller, type Answer } from './caller.js'
import { eventually, launchGateway, ledgerIn, sum, temporaryFolder, type Folder, type GatewayProcess } from './processes.js'
import { startProvider, type Provider, type ProviderOptions } from './provider.js'

export interface WorldOptions {
  readonly processes: number
  readonly commandTimeoutMs: number
  readonly holdTtlMs: number
  readonly groups: Readonly<Record<string, { readonly onStoreFailure: 'closed' | 'local', readonly limits: Limits }>>
  readonly leasePercent?: number
  /** A Redis that is killed has lost nothing that it had answered. */
  readonly keepsAll?: boolean
  readonly usage?: NonNullable<ProviderOptions['usage']>
}

export class StoreWorld {
  readonly #folder: Folder
  readonly #caller = createCaller(1_000)
  readonly #options: WorldOptions
  readonly server: RedisServer
  readonly provider: Provider
  /** Of a process that serves nothing: to look at the balances. */
  readonly state: State
  readonly gateways: readonly GatewayProcess[]
  readonly answers: Answer[] = []
  readonly #secrets: Readonly<Record<string, string>>
  #sent = 0

  private constructor (
    options: WorldOptions,
    parts: readonly [Folder, RedisServer, Provider, State, readonly GatewayProcess[], Readonly<Record<string, string>>]
  ) {
    this.#options = options
    ;[this.#folder, this.server, this.provider, this.state, this.gateways, this.#secrets] = parts
  }

  /** One key for each group, named as it; nobody has used it yet. */
  static async open (options: WorldOptions): Promise<StoreWorld> {
    const { processes, commandTimeoutMs, holdTtlMs, leasePercent = 5, keepsAll = false } = options
    const folder = temporaryFolder()
    const server = await startRedis({ keepsAll })
    const provider = await startProvider({ delayMs: () => Math.random() * 5, ...options.usage && { usage: options.usage } })
    const state = await openState({
      engine: 'redis', url: server.url, path: join(folder.path, 'watcher'), commandTimeoutMs: 10_000, holdTtlMs,
    })
    const groups = Object.entries(options.groups).map(([name, group]) => [name, { protocols: ['chat_completions'], ...group }])
    const secrets = await Promise.all(groups.map(async ([name]) => {
      const issued = await createKey(state.keys, String(name), { group: String(name), expiresAt: null, limits: {}, label: null })
      return [name, issued?.secret]
    }))
    const config = {
      upstreams: { main: { url: provider.url, credential: 'provider-key' } },
      groups: Object.fromEntries(groups),
      limits: { leasePercent },
      state: { engine: 'redis', url: server.url, path: './data', commandTimeoutMs, holdTtlMs },
    }
    const gateways = await Promise.all(Array.from({ length: processes }, async () => await launchGateway(folder.path, config)))
    return new StoreWorld(options, [folder, server, provider, state, gateways, Object.fromEntries(secrets)])
  }

  /** One chat in a group; gateways take turns unless one is named. */
  async chat (group: string, gateway = this.#sent % this.#options.processes): Promise<Answer> {
    this.#sent += 1
    const chat = { secret: String(this.#secrets[group]), tag: `${group}-${this.#sent}`, stream: this.#sent % 3 === 0 }
    const answer = await this.#caller.call(String(this.gateways[gateway]?.origin), chat)
    this.answers.push(answer)
    return answer
  }

  /** Every gateway has seen the key of every group. */
  async warm (): Promise<void> {
    for (const group of Object.keys(this.#options.groups)) {
      for (const gateway of this.gateways.keys()) await this.chat(group, gateway)
    }
  }

  /** A request every so often, whatever becomes of those before, until it is told to stop; resolves when all have answered. */
  steady (group: string, everyMs: number, over: AbortSignal): Promise<Answer[]> {
    const running: Array<Promise<Answer>> = []
    const beat = async (): Promise<Answer[]> => {
      const startedAt = performance.now()
      for (let i = 1; !over.aborted; i += 1) {
        running.push(this.chat(group))
        await pause(Math.max(0, startedAt + i * everyMs - performance.now()))
      }
      return await Promise.all(running)
    }
    return beat()
  }

  /** Resolves once every record is written and everything is charged; says what does not add up. */
  async reconcile (): Promise<string[]> {
    const violations: string[] = []
    const whole = this.answers.filter((answer) => answer.status === 200 && answer.whole)
    const path = join(this.#folder.path, 'data', 'ledger')
    let found = await ledgerIn(path)
    const complete = await eventually(async () => {
      found = await ledgerIn(path)
      return found.records.length >= whole.length
    })
    if (!complete) violations.push(`${found.records.length} records of ${whole.length} replies`)
    const records = new Map(found.records.map((record) => [record.id, record]))
    if (records.size !== found.records.length) violations.push('a record is there twice')
    for (const { id, tag } of whole) {
      if (records.get(id)?.charged !== this.provider.reported.get(tag)) {
        violations.push(`${tag}: charged ${records.get(id)?.charged}, reported ${this.provider.reported.get(tag)}`)
      }
    }
    for (const [tag, times] of this.provider.seen) if (times !== 1) violations.push(`${tag} reached the provider ${times} times`)
    const groups = Object.keys(this.#options.groups)
    const recordedOf = (group: string): number => sum(found.records.filter((record) => record.group === group)
      .map(({ charged }) => charged))
    const settled = await eventually(
      async () => (await Promise.all(groups.map(async (group) => await this.#settled(group, recordedOf(group))))).every(Boolean)
    )
    if (!settled) violations.push('not everything is settled')
    // A hold that nobody knows of any more expires, and is charged: give it the time.
    await pause(this.#options.holdTtlMs + 200)
    for (const group of groups) {
      const { spent, held, active } = await this.state.balances.read(group)
      if (spent !== recordedOf(group) || held !== 0 || active !== 0) {
        violations.push(`${group}: spent ${spent}, in the ledger ${recordedOf(group)}, held ${held}, active ${active}`)
      }
    }
    return violations
  }

  async #settled (group: string, recorded: number): Promise<boolean> {
    const { spent, held } = await this.state.balances.read(group)
    return held === 0 && spent >= recorded
  }

  async close (): Promise<void> {
    for (const gateway of this.gateways) await gateway.kill('SIGTERM')
    await this.#caller.close()
    await this.provider.close()
    await this.state.close()
    await this.server.stop()
    this.#folder.remove()
  }
}
