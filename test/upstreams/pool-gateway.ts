/** A gateway in front of a pool of scripted providers. */
import { gatewayOf } from '../../plugins/core/gateway.js'
import type { LlmGatewayOptions } from '../../plugins/index.js'
import type { MemberOptions, PoolOptions, UpstreamOptions } from '../../plugins/upstreams/options.js'
import { everyProtocol, secret, startGateway, type Gateway } from '../helpers/gateway.js'
import { startUpstream, type Script, type Upstream } from '../helpers/upstream.js'

interface Scope {
  teardown: (close: () => unknown) => unknown
}

export interface PoolGateway extends Gateway {
  /** `m0`, `m1`, ... by their place. */
  readonly members: readonly Upstream[]
  readonly options: LlmGatewayOptions
}

export interface PoolWishes {
  readonly members?: number
  readonly pool?: Omit<PoolOptions, 'members'>
  readonly rules?: ReadonlyArray<Omit<MemberOptions, 'upstream'>>
  readonly upstreams?: ReadonlyArray<Partial<UpstreamOptions>>
  readonly gateway?: Partial<LlmGatewayOptions>
  readonly server?: object
}

export async function startPool (
  t: Scope, { members: count = 2, pool, rules = [], upstreams = [], gateway = {}, server = {} }: PoolWishes = {}
): Promise<PoolGateway> {
  const members = await Promise.all(Array.from(
    { length: count }, async () => await startUpstream({ teardown: (close) => t.teardown(close) })
  ))
  const options = {
    upstreams: Object.fromEntries(members.map(({ url }, i) => [`m${i}`, { url, credential: `secret-${i}`, ...upstreams[i] }])),
    pools: { pool: { ...pool, members: members.map((_, i) => ({ upstream: `m${i}`, ...rules[i] })) } },
    groups: { all: { protocols: everyProtocol, upstream: 'pool' } },
    ...gateway,
  }
  return { ...await startGateway(t, '', options, server), members, options }
}

/** The first member is asked first: the second one is of a higher tier. */
export const inOrder = [{ tier: 1 }, { tier: 2 }, { tier: 3 }]

export const overloaded: Script = { status: 503, body: { error: { message: 'overloaded' } } }

export interface Reply {
  readonly status: number
  readonly body: string
  readonly headers: Readonly<Record<string, unknown>>
}

export async function ask (
  { app }: Gateway, body: object | string = {
    model: 'gpt-5', messages: [{ role: 'user', content: 'Hi' }],
  }, headers: Record<string, string> = {}, url = '/v1/chat/completions'
): Promise<Reply> {
  const reply = await app.inject({
    method: 'POST',
    url,
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...headers },
    payload: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: reply.statusCode, body: reply.body, headers: reply.headers }
}

/** How many requests each member got. */
export function seenBy ({ members }: PoolGateway): number[] {
  return members.map(({ seen }) => seen.length)
}

export function metricsOf ({ app }: PoolGateway): unknown {
  return gatewayOf(app).metrics.filter(({ name }) => /upstream|failover/.test(name)).map(({ name, read: values }) => [
    name, values().map((value) => ({ ...value.labels, value: Reflect.get(value, 'value') })),
  ])
}
