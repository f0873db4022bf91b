import type { FastifyRequest } from 'fastify'
import { checkMethods, checkOptions, checkWholeName, OptionError } from '../core/config/options.js'
import type { Balances } from '../core/balances/types.js'
import type { Ledger } from '../core/money/ledger.js'
import { memoryBalances } from '../core/balances/memory.js'
import type { HoldSizes } from './estimate.js'
import type { OnBudget } from './warnings.js'

/** Why a host's own `authorize` refuses. */
export type RefusalCode =
  'access_denied' | 'insufficient_quota' | 'budget_exceeded' | 'request_rate_exceeded' | 'token_rate_exceeded' | 'concurrency_exceeded'

export interface Refusal {
  code: RefusalCode
  /** What the limit allows, for the message to the caller. */
  limit?: number
  /** Milliseconds after which a retry makes sense. */
  retryAfterMs?: number
}

/** Undefined: the limits of key and group decide. `admit`: let in without asking them. */
export type Authorization = Refusal | 'admit' | undefined | void

export type Authorize = (request: FastifyRequest) => Authorization | Promise<Authorization>

export interface LimitsOptions {
  /**
   * What counts limits, balances and budgets.
   * @defaultValue this process alone, in memory
   */
  balances?: Balances
  /**
   * Where a record of each metered request is kept.
   * @defaultValue nowhere
   */
  ledger?: Ledger
  /**
   * Status of a refusal for a spent balance or budget.
   * @defaultValue 403: clients retry 429 for up to a minute
   */
  balanceStatus?: 402 | 403 | 429
  /**
   * A host's own decision, asked before the body is read, once key and group are known. It may refuse, let in without the limits
   * of key and group, or leave the decision to them. If it throws, the request is refused with 503.
   * @defaultValue none: the limits of key and group alone
   */
  authorize?: Authorize
  /**
   * The most tokens that one answer can have, by model; `*` for all others. Held for a request that does not ask for less.
   * @defaultValue `{ '*': 8192 }`
   */
  maxOutputTokens?: Record<string, number>
  /**
   * The most tokens that are held for a request's input, whatever its size.
   * @defaultValue 200,000
   */
  maxInputTokens?: number
  /**
   * Called when 50, 80 and 100 percent of a budget are spent: once per period, in the process whose request reached it. Nobody
   * waits for it; what it throws is logged.
   * @defaultValue none
   */
  onBudget?: OnBudget
  /**
   * Percent of every limit that each process may spend while the store is away, in groups with `onStoreFailure: local`.
   * @defaultValue 5
   */
  leasePercent?: number
}

export interface Rules {
  readonly balances: Balances
  readonly ledger: Ledger | null
  readonly balanceStatus: number
  readonly authorize: Authorize | null
  readonly sizes: HoldSizes
  readonly leasePercent: number
  readonly onBudget: OnBudget | null
}

const statuses: readonly unknown[] = [402, 403, 429]

/** Throws `LLM_GATEWAY_OPTION`. */
export function readOptions (options: LimitsOptions): Rules {
  checkOptions('limits', options, {
    'an object': ['balances', 'ledger', 'maxOutputTokens'],
    anything: ['balanceStatus'],
    'a function': ['authorize', 'onBudget'],
    // 0 would hold nothing, where elsewhere it means any.
    'a whole number of at least 1': ['leasePercent', 'maxInputTokens'],
  })
  const {
    balances, ledger = null, balanceStatus = 403, authorize = null, maxOutputTokens = {}, maxInputTokens = 200_000, leasePercent = 5,
    onBudget = null,
  } = options
  checkMethods('limits.balances', balances, ['hold', 'leave', 'settle', 'renew'])
  checkMethods('limits.ledger', ledger ?? undefined, ['append', 'flush'])
  if (!statuses.includes(balanceStatus)) throw new OptionError('limits.balanceStatus', 'must be 402, 403 or 429')
  if (leasePercent > 100) throw new OptionError('limits.leasePercent', 'must be at most 100')
  for (const [model, tokens] of Object.entries(maxOutputTokens)) {
    checkOptions('limits.maxOutputTokens', { [model]: tokens }, { 'a whole number of at least 1': [model] })
  }
  const { '*': otherOutput = 8_192, ...byModel } = maxOutputTokens
  for (const model of Object.keys(byModel)) checkWholeName(`limits.maxOutputTokens.${model}`, model)
  const sizes = { maxInputTokens, otherOutput, outputByModel: new Map(Object.entries(byModel)) }
  return { balances: balances ?? memoryBalances(), ledger, balanceStatus, authorize, sizes, leasePercent, onBudget }
}
