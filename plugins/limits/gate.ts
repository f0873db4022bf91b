import type { FastifyRequest } from 'fastify'
import { gatewayError, type GatewayError } from '../core/errors/gateway-error.js'
import type { Gateway } from '../core/gateway.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { CostForecast } from '../core/money/pricing.js'
import type { Limits } from '../core/types.js'
import { limited } from '../core/balances/parties.js'
import type { Bucket, Parties } from '../core/balances/types.js'
import { writeLog } from '../core/write-log.js'
import type { Admission } from './admission.js'
import { goesOn, inputEstimate, outputBound } from './estimate.js'
import type { Authorize, Rules } from './options.js'
import type { Answer } from './outage.js'
import { hostError, limitError } from './refusal.js'
import { ticketOf, type Ticket } from './ticket.js'

/** Decides over one request; without a promise if there are no limits, or they are counted in this process. */
export class Gate {
  readonly #rules: Rules
  readonly #admission: Admission
  readonly #gateway: Gateway
  /** Requests that the host's `authorize` was asked about: one that passes the router twice is asked about once. */
  readonly #authorized = new WeakSet<ModelCall>()

  constructor (rules: Rules, admission: Admission, gateway: Gateway) {
    this.#rules = rules
    this.#admission = admission
    this.#gateway = gateway
  }

  /** Before the body is read. */
  enter (llm: ModelCall, request: FastifyRequest): GatewayError | null | Promise<GatewayError | null> {
    const { authorize } = this.#rules
    if (authorize === null) return this.#enter(llm, request)
    if (this.#authorized.has(llm)) return null
    this.#authorized.add(llm)
    return this.#authorize(authorize, llm, request)
  }

  /** Once the body is known. */
  hold (llm: ModelCall, request: FastifyRequest): GatewayError | null | Promise<GatewayError | null> {
    const ticket = ticketOf(llm)
    if (llm.endpoint.metered === 'no') return null
    llm.body.goesOn = goesOn(llm)
    if (ticket === undefined) return this.#authorized.has(llm) ? this.#admitted(llm) : null
    const { sizes } = this.#rules
    const input = inputEstimate(llm, request.headers['content-length'], sizes)
    const output = outputBound(llm, sizes)
    const tokens = input + output
    const tooMany = tokens > mostTokens(ticket.parties) ? tokens : 0
    const cost = this.#costOf(ticket, llm, input, output)
    if (cost === null) return this.#unpriced(llm)
    return this.#judge(
      this.#admission.hold(ticket, { tokens, cost: cost.all }, { tokens: input, cost: cost.input }), llm, tooMany
    )
  }

  #enter (llm: ModelCall, request: FastifyRequest): GatewayError | null | Promise<GatewayError | null> {
    const { key, group } = llm.auth
    // A place taken after settlement would never be freed.
    if (llm.settled || key === null || group === null || (!limited(key.limits) && !limited(group.limits))) return null
    if (ticketOf(llm) !== undefined) return null
    const ticket = this.#admission.begin(llm, key, group, this.#gateway.pricing?.currency ?? '')
    // Its body is here in a moment: one question to the store is enough.
    if (comesSoon(llm, request)) return null
    return this.#judge(this.#admission.enter(ticket), llm, 0)
  }

  /** What it may cost; null if a budget in money needs that and there is no price. */
  #costOf ({ parties }: Ticket, llm: ModelCall, input: number, output: number): CostForecast | null {
    if (!countsCost(parties)) return free
    const { pricing } = this.#gateway
    return pricing?.forecast(llm, input, output) ?? (pricing?.unpriced === 'allow' ? free : null)
  }

  /** For a request that the host let in without its limits: beside a budget in money, a model without a price is still refused. */
  #admitted (llm: ModelCall): GatewayError | null {
    const { key, group } = llm.auth
    const { pricing } = this.#gateway
    if (!hasMoneyBudget(key?.limits) && !hasMoneyBudget(group?.limits)) return null
    return pricing?.unpriced === 'allow' || pricing?.forecast(llm, 0, 0) != null ? null : this.#unpriced(llm)
  }

  async #authorize (authorize: Authorize, llm: ModelCall, request: FastifyRequest): Promise<GatewayError | null> {
    try {
      const said = await authorize(request)
      if (said === 'admit' || llm.settled) return null
      if (said === undefined) return await this.#enter(llm, request)
      const { error, limit } = hostError(said, this.#rules.balanceStatus)
      if (limit !== null) this.#rejected(llm, limit)
      return error
    } catch (error) {
      writeLog(request.log, 'error', { err: error }, 'limits.authorize failed')
      return this.#verdict('store down', llm, 0)
    }
  }

  #judge (answer: Answer | Promise<Answer>, llm: ModelCall, tooMany: number): GatewayError | null | Promise<GatewayError | null> {
    return answer instanceof Promise ? answer.then((later) => this.#verdict(later, llm, tooMany)) : this.#verdict(answer, llm, tooMany)
  }

  #verdict (answer: Answer, llm: ModelCall, tooMany: number): GatewayError | null {
    if (answer === 'store down') {
      this.#rejected(llm, 'store')
      return gatewayError('limit_store_unavailable')
    }
    if (answer.ok) return null
    this.#rejected(llm, answer.limit)
    return limitError(answer, llm.endpoint.family, this.#rules.balanceStatus, tooMany)
  }

  #unpriced (llm: ModelCall): GatewayError {
    this.#rejected(llm, 'price')
    return gatewayError('model_not_priced')
  }

  #rejected (llm: ModelCall, limit: string): void {
    this.#gateway.recorder.limitRejected(String(llm.auth.group?.id), limit)
  }
}

/** Bodies up to this size are read before the limits are asked. */
const maxSoonBytes = 64 * 1024

function comesSoon ({ endpoint }: ModelCall, { headers }: FastifyRequest): boolean {
  const length = Number(headers['content-length'])
  return endpoint.metered !== 'no' && length > 0 && length <= maxSoonBytes
}

const free = { all: 0, input: 0 }

function countsCost ({ groupBuckets, keyBuckets }: Parties): boolean {
  return groupBuckets?.some(isInMoney) === true || keyBuckets?.some(isInMoney) === true
}

function hasMoneyBudget (limits: Limits | undefined): boolean {
  return limits?.budgets?.some(({ cost }) => cost !== undefined) ?? false
}

function isInMoney ({ unit }: Bucket): boolean {
  return unit === 'cost'
}

function mostTokens ({ groupLimits, keyLimits }: Parties): number {
  return Math.min(groupLimits.tokensPerMinute ?? Infinity, keyLimits.tokensPerMinute ?? Infinity)
}
