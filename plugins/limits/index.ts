/**
 * One atomic decision once the body is known: a place, and the tokens that the request may cost. Two where the body is large or
 * does not tell its length: a place before it is read, its tokens after. Settled once, at the request's end, to what was really used.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { GatewayError } from '../core/errors/gateway-error.js'
import { refuse } from '../core/errors/refuse.js'
import { joinGateway, type Gateway } from '../core/gateway.js'
import { modelCallOf, type ModelCall } from '../core/call/model-call.js'
import { writeLog } from '../core/write-log.js'
import type { LostListener } from '../core/balances/types.js'
import type { Shipping } from '../core/money/ledger.js'
import { Admission } from './admission.js'
import { readBudgets } from './budget-status.js'
import { IssuedBudgets } from './issued-budgets.js'
import { expectCounts } from './expected.js'
import { Gate } from './gate.js'
import { refuseUnpriced } from './priced-budgets.js'
import { readOptions, type LimitsOptions } from './options.js'
import { Outbox } from './outbox.js'
import { Reread } from './reread.js'
import { keepRecord, settleLimits } from './settle.js'
import { storeSideOf } from './store-side.js'
import { budgetWarnings } from './warnings.js'

export type { BudgetEvent, OnBudget } from './warnings.js'
export type { Authorization, LimitsOptions, Refusal, RefusalCode } from './options.js'

/** About as often as gauges are scraped. */
const rereadMs = 15_000

async function registerLimits (app: FastifyInstance, options: LimitsOptions): Promise<void> {
  const gateway = joinGateway(app)
  const rules = readOptions(options)
  const { balances, ledger } = rules
  const onLost: LostListener = (settlement, err) => {
    ledger?.noteUnsettled?.()
    gateway.recorder.settlementLost()
    writeLog(app.log, 'error', { settlement, err }, 'a settlement could not reach the state store')
  }
  const warn = budgetWarnings(() => gateway.recorder, app.log, rules.onBudget)
  const side = storeSideOf(balances)
  const outbox = new Outbox(side.backlog, { onLost, onSettled: warn })
  const admission = new Admission(side, outbox, rules.leasePercent, {
    onTrouble: (err) => writeLog(app.log, 'error', { err }, 'the limit store cannot answer'),
    onReached: warn,
  })
  const gate = new Gate(rules, admission, gateway)
  const currency = (): string => gateway.pricing?.currency ?? ''
  const reread = new Reread(balances, admission.remaining, () => gateway.parties, currency)

  app.addHook('onRequest', function llmGatewayLimits (request, reply, done) {
    const llm = modelCallOf(request)
    if (llm === null) done()
    else follow(gate.enter(llm, request), llm, request, reply, done)
  })

  app.addHook('preHandler', function llmGatewayLimits (request, reply, done) {
    const llm = modelCallOf(request)
    if (llm === null) done()
    else follow(gate.hold(llm, request), llm, request, reply, done)
  })

  const parts = { admission, ledger, pricing: () => gateway.pricing }
  gateway.settlement.add('limits', (llm) => settleLimits(parts, llm))
  if (ledger !== null) gateway.settlement.add('ledger', (llm, { log }) => keepRecord(parts, ledger, llm, log))

  const issued = new IssuedBudgets(balances, () => gateway.issuedKeys)
  gateway.budgetsStatus = async () => await readBudgets(balances, gateway.parties, issued, currency())

  const endings: Array<() => void> = []
  app.addHook('onReady', async () => {
    // Prices may be registered after the limits.
    if (!gateway.pricing?.hasPrices) refuseUnpriced(gateway.parties)
    expectCounts(gateway)
    const renewing = setInterval(() => admission.renew(), Math.ceil(balances.holdTtlMs / 3)).unref()
    const rereading = setInterval(() => reread.some(), rereadMs).unref()
    // A start waits for no store.
    reread.some()
    const forget = gateway.recorder.gauge('balance_remaining_ratio', () => admission.remaining.samples())
    const unwarned = balances.onRecovered?.(warn, onLost)
    const unheard = ledger?.onTrouble?.((err, again) => {
      gateway.recorder.ledgerFailed()
      if (!again) {
        writeLog(app.log, 'error', { err }, 'usage records cannot be written: they wait in memory, and their tokens are not charged yet')
      }
    })
    if (ledger?.shipping) endings.push(watchShipping(ledger.shipping, gateway, app))
    const forgetBudgets = gateway.recorder.gauge('budget_remaining_ratio', () => admission.remaining.budgets.samples())
    endings.push(forget, forgetBudgets, () => unheard?.(), () => unwarned?.())
    endings.push(() => clearInterval(renewing), () => clearInterval(rereading))
  })
  app.addHook('onClose', async () => {
    for (const end of endings) end()
    await ledger?.flush()
    await outbox.close()
  })
}

/** Returns what ends it. */
function watchShipping (shipping: Shipping, { recorder }: Gateway, { log }: FastifyInstance): () => void {
  const endings = [
    recorder.gauge('ledger_unshipped_records', () => [{ labels: {}, value: shipping.unshipped }]),
    recorder.gauge('ledger_lag_seconds', () => [{ labels: {}, value: shipping.lagMs / 1_000 }]),
    shipping.onTrouble((err, again) => {
      if (!again) writeLog(log, 'error', { err }, 'usage records do not reach the usage store: they wait in the files of the ledger')
    }),
  ]
  return () => endings.forEach((end) => end())
}

function follow (
  verdict: GatewayError | null | Promise<GatewayError | null>, llm: ModelCall, request: FastifyRequest, reply: FastifyReply,
  done: () => void
): void {
  if (verdict === null) done()
  else if (verdict instanceof Promise) {
    verdict.then((later) => {
      // The caller left while the store was asked: its request is settled, and goes no further.
      if (!llm.settled) follow(later, llm, request, reply, done)
    })
  } else refuse(request, reply, llm.endpoint.family, verdict)
}

// Before it, nothing would be limited: whose request it is was not known yet.
/** What a key and its group may still spend: requests, tokens, a balance, budgets (docs/keys-and-limits.md). Registered after auth. */
export const limits = fp(registerLimits, { fastify: '5.x', name: 'llm-gateway-limits', dependencies: ['llm-gateway-auth'] })
