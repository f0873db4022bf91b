/** A gateway whose limits, ledger and upstream a test holds in its hands. */
import type { FastifyInstance, FastifyServerOptions } from 'fastify'
import { ModelCall } from '../../plugins/core/call/model-call.js'
import { gatewayOf } from '../../plugins/core/gateway.js'
import type { Pricing } from '../../plugins/core/money/pricing.js'
import type { LimitsOptions } from '../../plugins/limits/index.js'
import type { Limits } from '../../plugins/core/types.js'
import { memoryBalances, memoryLedger, type Account, type Balances, type Ledger, type LedgerRecord } from '../../plugins/state/index.js'
import type { Test } from 'tap'
import { fillCall, type CallFields } from '../helpers/call-fields.js'
import { call, everyProtocol, listen, read, secret, startGateway } from '../helpers/gateway.js'
import { startUpstream, type Upstream } from '../helpers/upstream.js'
import { endpointOf } from '../metrics/requests.js'

export interface Setup {
  readonly app: FastifyInstance
  readonly url: string
  readonly upstream: Upstream
  readonly balances: Balances
  readonly ledger: Ledger
  /** A chat request; `body` is added to the smallest one. */
  readonly chat: (body?: Record<string, unknown>, headers?: Record<string, string>) => Promise<Answer>
  readonly account: (key?: string) => Promise<Account>
  /** Resolves when no request holds anything any more. */
  readonly quiet: () => Promise<Account>
  readonly records: () => Promise<LedgerRecord[]>
}

export interface Answer {
  readonly status: number
  readonly headers: Record<string, unknown>
  readonly json: Record<string, Record<string, unknown>>
}

export interface Given {
  readonly group?: Limits
  readonly key?: Limits
  readonly onStoreFailure?: 'closed' | 'local'
  readonly limits?: LimitsOptions
  readonly drain?: { maxMs: number }
  readonly server?: FastifyServerOptions
}

export const messages = [{ role: 'user', content: 'hi' }]

/** What a request may cost by an estimate of tokens, billionths of which are its price. */
export function pricingBy (estimate: Pricing['estimate'], currency = 'USD'): Pricing {
  return {
    currency,
    hasPrices: true,
    estimate,
    atMost: ({ usage: { tokens } }) => tokens === null ? null : tokens.input + tokens.output,
    forecast: (llm, inputTokens, outputTokens) => {
      const all = estimate(llm, inputTokens, outputTokens)
      const input = estimate(llm, inputTokens, 0)
      return all === null || input === null ? null : { all, input }
    },
  }
}

export async function setup (t: Test, given: Given = {}): Promise<Setup> {
  const upstream = await startUpstream(t)
  const balances = given.limits?.balances ?? memoryBalances()
  const ledger = given.limits?.ledger ?? memoryLedger()
  const { app } = await startGateway(t, upstream.url, {
    groups: { all: { protocols: everyProtocol, limits: given.group ?? {}, onStoreFailure: given.onStoreFailure ?? 'closed' } },
    keys: [{ id: 'caller', group: 'all', secret, limits: given.key ?? {} }],
    limits: { ...given.limits, balances, ledger },
    ...given.drain && { forward: { drain: given.drain } },
  }, given.server)
  // Until a test says what things cost.
  gatewayOf(app).pricing = pricingBy(() => null)
  const url = await listen(app)
  const account = async (key?: string): Promise<Account> => await balances.read('all', key)
  return {
    app,
    url,
    upstream,
    balances,
    ledger,
    account,
    chat: async (body = {}, headers = {}) => await post(`${url}/v1/chat/completions`, { model: 'm', messages, ...body }, headers),
    quiet: async () => {
      for (;;) {
        const now = await account()
        if (now.held === 0 && now.active === 0) return now
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    },
    records: async () => {
      const records: LedgerRecord[] = []
      for await (const record of ledger.read()) records.push(record)
      return records
    },
  }
}

export async function post (url: string, body: object, headers: Record<string, string> = {}): Promise<Answer> {
  const reply = await call(url, { headers, body: JSON.stringify(body) }).reply
  const { bytes } = await read(reply)
  return { status: Number(reply.statusCode), headers: reply.headers, json: JSON.parse(bytes.toString()) }
}

/** A call of an endpoint, with what a test says of it. */
export function callOf (endpoint: string, given: CallFields = {}): ModelCall {
  const llm = new ModelCall({
    kind: 'endpoint', endpoint: endpointOf(endpoint), url: '/', model: 'm', mountLength: 0, repair: null, keys: null,
  })
  return fillCall(llm, given)
}
