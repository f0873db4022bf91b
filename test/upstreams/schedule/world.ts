/** A gateway with a pool, its members, and what is kept of each request, for one schedule. */
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import { gatewayOf } from '../../../plugins/core/gateway.js'
import type { ModelCall } from '../../../plugins/core/call/model-call.js'
import llmGateway, { proxyOptions } from '../../../plugins/index.js'
import { memoryBalances, memoryLedger, type Balances, type Ledger } from '../../../plugins/state/index.js'
import type { MemberOptions, RetryCause } from '../../../plugins/upstreams/options.js'
import { freePort } from '../../helpers/free-port.js'
import { everyProtocol, gatewayOptions, listen } from '../../helpers/gateway.js'
import type { Ask, Leaving } from './caller.js'
import { FarSide, type Step } from './far-side.js'

export interface MemberPlan extends Omit<MemberOptions, 'upstream'> {
  /** Nobody listens there. */
  readonly dead: boolean
  /** Its secret is asked for again when it was refused. */
  readonly renews: boolean
  readonly account: string
}

export interface CallerPlan {
  readonly protocol: Ask['protocol']
  readonly stream: boolean
  readonly model: string
  readonly startMs: number
  readonly leaves: Leaving
  /** What becomes of its attempts, in their order; later ones are answered. */
  readonly steps: readonly Step[]
}

export interface Schedule {
  /** In a mount of the host's, and not on own routes. */
  readonly mounted: boolean
  readonly drainMs: number
  readonly attempts: number
  readonly retryOn: readonly RetryCause[]
  readonly affinity: 'conversation' | 'key' | 'none'
  readonly members: readonly MemberPlan[]
  readonly callers: readonly CallerPlan[]
}

export const attemptTimeoutMs = 150
const idleTimeoutMs = 200
const balance = 1_000_000_000

export interface World {
  readonly app: FastifyInstance
  readonly origin: string
  readonly far: FarSide
  readonly balances: Balances
  readonly ledger: Ledger
  readonly settled: ModelCall[]
  /** How often each request's hold was settled. */
  readonly settlements: Map<string, number>
  readonly secrets: ReadonlyMap<string, ReadonlySet<string>>
}

export async function startWorld ({ mounted, drainMs, attempts, retryOn, affinity, members }: Schedule): Promise<World> {
  const far = new FarSide()
  const memory = memoryBalances()
  const settlements = new Map<string, number>()
  const balances: Balances = {
    ...memory,
    settle: (settlement) => {
      settlements.set(settlement.id, (settlements.get(settlement.id) ?? 0) + 1)
      return memory.settle(settlement)
    },
  }
  const ledger = memoryLedger()
  const urls = await Promise.all(members.map(async ({ dead }, i) => dead ? `http://127.0.0.1:${await freePort()}` : await far.add(`m${i}`)))
  const secrets = new Map(members.map((_, i) => [`m${i}`, new Set<string>()]))
  const credential = (i: number) => (): string => {
    const given = secrets.get(`m${i}`) ?? new Set()
    given.add(`secret-${i}-${given.size}`)
    return `secret-${i}-${given.size - 1}`
  }
  const transport = { idleTimeoutMs, drain: { maxMs: drainMs } }
  const app = Fastify()
  await app.register(llmGateway, gatewayOptions('', {
    routes: !mounted,
    upstreams: Object.fromEntries(members.map(({ renews, account }, i) => [
      `m${i}`, { url: String(urls[i]), account, credential: renews ? credential(i) : credential(i)() },
    ])),
    pools: {
      pool: {
        members: members.map(({ dead, renews, account, ...rules }, i) => ({ upstream: `m${i}`, ...rules })),
        attempts,
        retryOn,
        affinity,
        attemptTimeoutMs,
      },
    },
    groups: { all: { protocols: everyProtocol, upstream: 'pool', limits: { balance, concurrency: 1_000 } } },
    limits: { balances, ledger },
    forward: transport,
    log: false,
  }))
  if (mounted) {
    await app.register(httpProxy, { ...proxyOptions(transport), upstream: 'http://127.0.0.1:9', prefix: '/v1', rewritePrefix: '/v1' })
  }
  const settled: ModelCall[] = []
  gatewayOf(app).settlement.onSettled((llm) => settled.push(llm))
  return { app, origin: await listen(app), far, balances, ledger, settled, settlements, secrets }
}
