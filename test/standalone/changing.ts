/** Configurations that follow one another, in each of which every secret tells its configuration, upstream, address and group. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import type { Test } from 'tap'
import type { GatewayConfig } from '../../plugins/standalone/config-types.js'
import { createGateway } from '../../plugins/standalone/gateway.js'
import { openFronts } from '../../plugins/standalone/fronts.js'
import { Resources } from '../../plugins/standalone/resources.js'
import { Switchboard } from '../../plugins/standalone/switchboard.js'
import type { UpstreamOptions } from '../../plugins/upstreams/index.js'
import { originOf } from '../../plugins/standalone/curls.js'
import { start } from './run.js'

export type Group = 'a' | 'b'
export const names = ['one', 'two', 'three', 'four', 'five', 'six'] as const
export const callers = ['k0', 'k1', 'k2', 'k3'] as const
export const addresses = 3

const ways = ['text', 'header', 'query', 'file', 'renewed', 'ending'] as const

/** One configuration: `order` says whose each upstream is, the first three in the pool of `a`, then its route, then the pool of `b`. */
export interface Plan {
  readonly order: ReadonlyArray<typeof names[number]>
  readonly at: readonly number[]
  readonly ways: ReadonlyArray<typeof ways[number]>
  readonly keys: ReadonlyArray<Group | null>
}

const each = (most: number) => ({ minLength: most, maxLength: most })

export const plan: fc.Arbitrary<Plan> = fc.record({
  order: fc.shuffledSubarray([...names], each(names.length)),
  at: fc.array(fc.nat(addresses - 1), each(names.length)),
  ways: fc.array(fc.constantFrom(...ways), each(names.length)),
  keys: fc.array(fc.constantFrom('a' as const, 'b' as const, null), each(callers.length)),
})

function groupAt (place: number): Group {
  return place < 4 ? 'a' : 'b'
}

/** How a running gateway gets the next configuration. `gate`: credentials that are asked for, and are slow, come once it is open. */
export interface Place {
  readonly origin: string
  readonly put: (config: GatewayConfig) => Promise<void>
  /** Whether it takes functions. */
  readonly inCode: boolean
}

export interface Surroundings {
  readonly urls: readonly string[]
  readonly folder: string
  readonly gate: () => Promise<unknown>
}

/** No two of these secrets are the same, and whoever sees one knows what it is. */
function secretOf (version: number, place: number, { order, at }: Plan): string {
  return `canary-v${version}-${String(order[place])}-s${String(at[place])}-${groupAt(place)}`
}

export const secretPattern = /^canary-v(\d+)-(\w+)-s(\d)-([ab])-r(\d+)$/

export function configOf (version: number, made: Plan, around: Surroundings, inCode: boolean): GatewayConfig {
  const upstreams = made.order.map((name, place): [string, UpstreamOptions] => [name, upstreamOf(version, place, made, around, inCode)])
  const pool = (members: readonly string[]) => ({
    members: [...members],
    attempts: 3,
    affinityTtlMs: 60_000,
    retryOn: ['connect', 'reset', 'timeout', 'first_event', 429, 500, 502, 503, 504, 529] as const,
  })
  const limits = { concurrency: 16 }
  const protocols = ['chat_completions' as const, 'responses' as const]
  return {
    upstreams: Object.fromEntries(upstreams),
    pools: { 'pool-a': pool(made.order.slice(0, 3)), 'pool-b': pool(made.order.slice(4)) },
    groups: {
      a: { protocols, upstream: 'pool-a', limits, routes: [{ models: ['routed-*'], upstream: String(made.order[3]) }] },
      b: { protocols, upstream: 'pool-b', limits },
    },
    keys: callers.flatMap((id, i) => made.keys[i] ? [{ id, group: made.keys[i], secret: `canary-${id}` }] : []),
    auth: { failures: { perMinute: 1_000_000 } },
    state: { engine: 'memory' },
    console: { path: '/console' },
  }
}

function upstreamOf (version: number, place: number, made: Plan, { urls, folder, gate }: Surroundings, inCode: boolean): UpstreamOptions {
  const url = String(urls[made.at[place] ?? 0])
  const secret = secretOf(version, place, made)
  const way = made.ways[place]
  let asked = 0
  if (way === 'text') return { url, credential: `${secret}-r0` }
  if (way === 'header') return { url, credential: `${secret}-r0`, credentialHeader: 'api-key' }
  // In a file, each upstream has a credential.
  if (way === 'query' && inCode) return { url, query: { key: `${secret}-r0` } }
  if (way === 'file' || !inCode) {
    const file = join(folder, secret)
    writeFileSync(file, `${secret}-r0\n`)
    return { url, credential: { file } }
  }
  return {
    url,
    credential: async () => {
      const text = `${secret}-r${asked++}`
      await (asked % 2 === 1 ? gate() : pause(1))
      if (asked % 5 === 0) throw new Error('no secret now')
      return way === 'renewed' ? text : { secret: text, expiresAt: Date.now() + 20 }
    },
  }
}

/** The process as it is started, from its file. */
export async function fromFile (t: Test, first: GatewayConfig): Promise<Place> {
  const { gateway, origin, write, log } = await start(t, JSON.stringify(first))
  const put = async (config: GatewayConfig): Promise<void> => {
    write(JSON.stringify(config))
    if (!await gateway.reload()) throw new Error(log())
  }
  return { origin, put, inCode: false }
}

/** The same parts, from an object that may hold functions. */
export async function fromCode (t: Test, first: GatewayConfig): Promise<Place> {
  const resources = new Resources({ write: () => {} })
  const make = async (config: GatewayConfig) => await createGateway(config, await resources.provide(config))
  const board = new Switchboard(await make(first))
  const fronts = await openFronts(first, { host: '127.0.0.1', port: 0 }, board.handle, resources.consolePath, () => {})
  t.teardown(async () => {
    await fronts.close()
    await board.close()
    await resources.close()
  })
  return {
    origin: originOf(fronts.address),
    put: async (config) => board.replace(await make(config), (error) => t.fail(String(error))),
    inCode: true,
  }
}
