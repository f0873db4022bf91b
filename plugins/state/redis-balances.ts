import type { Limits } from '../core/types.js'
import { StoreDownError } from './breaker.js'
import { limited } from './parties.js'
import type { RedisLink } from './redis-link.js'
import type { ScriptName } from './redis-scripts.js'
import type { Account, Balances, Decision, LimitName, Scope } from './types.js'

export interface RedisBalancesOptions {
  readonly prefix: string
  readonly holdTtlMs: number
  /** A clock in place of the server's, for tests. */
  readonly now?: () => number
}

/** Balances that every process with the same Redis shares. */
export function redisBalances (link: RedisLink, { prefix, holdTtlMs, now }: RedisBalancesOptions): Balances {
  const run = async (name: ScriptName, group: string, key: string, values: ReadonlyArray<string | number>): Promise<unknown[]> => {
    const clock = now === undefined ? '' : now()
    const reply = await link.script(name, keysOf(prefix, group, key), [clock, ...values])
    return Array.isArray(reply) ? reply : [reply]
  }
  return {
    holdTtlMs,
    hold: async (ask) => {
      const { group, key } = ask
      const counts = [ask.requests, ask.tokens, ask.floor]
      const values = [holdTtlMs, ask.id, key, ...counts, ...limitValues(ask.keyLimits), ...limitValues(ask.groupLimits)]
      return decisionOf(await run('hold', group, key, values))
    },
    leave: async (id, group) => { await run('leave', group, '', [id]) },
    settle: async ({ id, group, key, tokens, late }) => { await run('settle', group, key, [id, key, tokens, ...late]) },
    renew: async (group, ids) => { await run('renew', group, '', [holdTtlMs, ...ids]) },
    sweep: async (group) => Number((await run('sweep', group, '', []))[0]),
    read: async (group, key) => {
      const scope: Scope = key === undefined ? 'group' : 'key'
      return accountOf(await run('read', group, key ?? '', [scope, key ?? '']))
    },
    close: async () => {},
  }
}

/** One hash tag for all that a step touches: one slot of a cluster. Encoded, because a brace would end the tag. */
function keysOf (prefix: string, group: string, key: string): string[] {
  const tag = `${prefix}:{${encodeURIComponent(group)}}`
  return [`${tag}:holds`, `${tag}:deadlines`, `${tag}:accounts`, `${tag}:minute`, `${tag}:minute:${key}`]
}

function limitValues (limits: Limits): Array<string | number> {
  const { balance = '', concurrency = '', requestsPerMinute = '', tokensPerMinute = '' } = limits
  return [limited(limits) ? 1 : 0, balance, concurrency, requestsPerMinute, tokensPerMinute]
}

const limitNames: readonly LimitName[] = ['requests', 'tokens', 'concurrency', 'balance']

function decisionOf ([ok, ...rest]: unknown[]): Decision {
  if (ok === 1) return { ok: true, left: { key: leftOf(rest[0]), group: leftOf(rest[1]) } }
  const [name, scope, allowed, free, retryAfterMs] = rest
  const limit = limitNames.find((known) => known === name)
  if (limit === undefined) throw new StoreDownError('gave an answer that cannot be read')
  return {
    ok: false,
    limit,
    scope: scope === 'key' ? 'key' : 'group',
    allowed: Number(allowed),
    free: Number(free),
    retryAfterMs: Number(retryAfterMs),
  }
}

function leftOf (value: unknown): number | null {
  return value === '' ? null : Number(value)
}

function accountOf ([spent, held, active, requests, tokens]: unknown[]): Account {
  return {
    spent: Number(spent), held: Number(held), active: Number(active), requests: Number(requests), tokens: Number(tokens),
  }
}
