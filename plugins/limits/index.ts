/**
 * One atomic decision once the body is known: a place, and the tokens that the request may use. Two if the body is large or
 * has no declared length: a place before it is read, its tokens after. Settled once, at the request's end, to what was really used.
 */
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, preHandlerHookHandler } from 'fastify'
import type { GatewayError } from '../core/errors/gateway-error.js'
import { refuse } from '../core/errors/refuse.js'
import { joinGateway, type Gateway } from '../core/gateway.js'
import { gatewayPlugin } from '../core/gateway-plugin.js'
import { modelCallOf, type ModelCall } from '../core/call/model-call.js'
import { writeLog } from '../core/write-log.js'
import type { LostListener } from '../core/balances/types.js'
import type { Recorder } from '../core/recorder.js'
import { Admission } from './admission.js'
import { IssuedBudgets, readBudgets } from './budget-status.js'
import { expectCounts } from './expected.js'
import { Gate } from './gate.js'
import { refuseUnpriced } from './priced-budgets.js'
import { Later } from './later.js'
import { readOptions, type LimitsOptions } from './options.js'
import { Outage } from './outage.js'
import { Outbox } from './outbox.js'
import type { Remaining } from './remaining.js'
import { Reread } from './reread.js'
import { keepRecord, settleLimits, type SettlementParts } from './settle.js'
import { storeSideOf } from './store-side.js'
import { budgetWarnings } from './warnings.js'
import { watchLedger } from './watch-ledger.js'

export type { BudgetEvent, OnBudget } from './warnings.js'
export type { Authorization, LimitsOptions, Refusal, RefusalCode } from './options.js'

const withoutUsage = 'usage is not registered: limits charges estimates, on a mount without proxyOptions() nothing'

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
  const outage = new Outage(rules.leasePercent, side, (err) => writeLog(app.log, 'error', { err }, 'the limit store cannot answer'))
  const admission = new Admission(side, outbox, outage, warn)
  const currency = (): string => gateway.pricing?.currency ?? ''
  enforce(app, new Gate(rules, admission, gateway))
  const later = new Later(side.unwritten, () => gateway.notes, (err) => {
    writeLog(app.log, 'warn', { err }, 'what a response in the background uses cannot be charged: it stays charged what it held')
  })
  gateway.usageTold = async (llm, told) => await later.claim(llm, told)
  settleAtEnd(gateway, { admission, ledger, pricing: () => gateway.pricing, later, outbox })
  const issued = new IssuedBudgets(balances, gateway)
  gateway.budgetsStatus = async () => await readBudgets(balances, gateway.parties, issued, currency())
  const reread = new Reread(balances, admission.remaining, () => gateway.parties, currency)
  const endings: Array<() => void> = []
  app.addHook('onReady', async () => {
    // Prices may be registered after the limits.
    if (!gateway.pricing?.hasPrices) refuseUnpriced(gateway.parties)
    if (!app.hasPlugin('llm-gateway-usage')) app.log.warn(withoutUsage)
    expectCounts(gateway)
    endings.push(keepUp(reread), renewHolds(balances.holdTtlMs, admission), ...gauges(gateway.recorder, admission.remaining))
    const stopRecovery = balances.onRecovered?.(warn, onLost)
    endings.push(() => stopRecovery?.())
    if (ledger !== null) endings.push(...watchLedger(ledger, gateway.recorder, app.log))
  })
  app.addHook('onClose', async () => {
    for (const end of endings) end()
    await ledger?.flush()
    await outbox.close()
  })
}

/** Takes a place before the body is read where that is needed, and holds the rest once the body is known. */
function enforce (app: FastifyInstance, gate: Gate): void {
  app.addHook('onRequest', askFirst((llm, request) => gate.enter(llm, request)))
  app.addHook('preHandler', askFirst((llm, request) => gate.hold(llm, request)))
}

function askFirst (ask: Gate['hold']): preHandlerHookHandler {
  return function llmGatewayLimits (request, reply, done) {
    const llm = modelCallOf(request)
    if (llm === null) done()
    else follow(ask(llm, request), llm, reply, done)
  }
}

function settleAtEnd (gateway: Gateway, parts: SettlementParts): void {
  const { ledger } = parts
  gateway.settlement.add('limits', (llm, { log }) => settleLimits(parts, llm, log))
  if (ledger !== null) gateway.settlement.add('ledger', (llm, { log }) => keepRecord(parts, ledger, llm, log))
}

/**
 * Renews the holds of requests that are not settled. Returns what ends it, as soon as there are none: records of an app that a reload
 * replaced may still wait for the disk.
 */
function renewHolds (holdTtlMs: number, admission: Admission): () => void {
  let isEnding = false
  const timer = setInterval(() => {
    admission.renew()
    if (isEnding && admission.isIdle) clearInterval(timer)
  }, Math.ceil(holdTtlMs / 3)).unref()
  return () => {
    isEnding = true
    if (admission.isIdle) clearInterval(timer)
  }
}

/** Reads now and then what other processes left. Returns what ends it. */
function keepUp (reread: Reread): () => void {
  const timer = setInterval(() => reread.some(), rereadMs).unref()
  // A start waits for no store.
  reread.some()
  return () => clearInterval(timer)
}

/** Returns what takes them away again. */
function gauges (recorder: Recorder, remaining: Remaining): Array<() => void> {
  return [
    recorder.gauge('balance_remaining_ratio', () => remaining.samples()),
    recorder.gauge('budget_remaining_ratio', () => remaining.budgets.samples()),
  ]
}

function follow (
  verdict: GatewayError | null | Promise<GatewayError | null>, llm: ModelCall, reply: FastifyReply, done: (error?: Error) => void
): void {
  if (verdict === null) done()
  else if (verdict instanceof Promise) {
    verdict.then((later) => {
      // The caller left while the store was asked: its request is settled, and goes no further.
      if (!llm.settled) follow(later, llm, reply, done)
      // A store of the host's may resolve with what is no decision.
    }, done)
  } else refuse(reply, llm.endpoint.family, verdict)
}

/**
 * What a key and its group may still spend: requests, tokens, a balance, budgets (docs/keys-and-limits.md). Registered after auth, which
 * knows whose request it is.
 */
export const limits: FastifyPluginAsync<LimitsOptions> = gatewayPlugin('limits', registerLimits, ['auth'])
