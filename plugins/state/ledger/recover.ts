import { setMaxListeners } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { isRefused, maxRefusals } from '../../core/balances/store-down.js'
import type { LostListener, SettledListener } from '../../core/balances/types.js'
import type { Balances, Ledger, LedgerRecord } from '../types.js'

const atOnce = 100
const retryMs = 100

/** Hear the result of each settlement. */
export interface RecoveryListeners {
  readonly onSettled: SettledListener
  readonly onLost: LostListener
}

/**
 * Settles again what killed processes recorded last. What was settled already stays as it is, because a settlement counts once. A store
 * that is away is asked again until it is back, or until `closing`, which rejects. Records that it refuses are put aside.
 */
export async function recover (
  ledger: Ledger, balances: Balances, closing: AbortSignal, listeners: RecoveryListeners
): Promise<number> {
  // Each record that waits for its next try adds a listener; Node warns beyond ten.
  setMaxListeners(0, closing)
  // All at once, because a rejected promise that nobody awaits yet would end the process.
  const settleAll = async (records: readonly LedgerRecord[]): Promise<void> => {
    await Promise.all(records.map(async (record) => await settle(balances, record, closing, listeners)))
  }
  let count = 0
  let batch: LedgerRecord[] = []
  for await (const record of ledger.unsettled()) {
    count += 1
    if (batch.push(record) < atOnce) continue
    await settleAll(batch)
    batch = []
  }
  await settleAll(batch)
  return count
}

async function settle (
  balances: Balances, { id, key, group, charged, chargedCost = 0, late, lateBuckets, lateBalances }: LedgerRecord,
  closing: AbortSignal, { onSettled, onLost }: RecoveryListeners
): Promise<void> {
  if (key === null || group === null) return
  const settlement = { id, group, key, tokens: charged, cost: chargedCost, late, lateBuckets, lateBalances }
  let failure: unknown = null
  for (let refusals = 0; refusals < maxRefusals;) {
    try {
      onSettled(settlement, await balances.settle(settlement))
      return
    } catch (error) {
      failure = error
      if (isRefused(error)) refusals += 1
      await pause(retryMs, undefined, { signal: closing, ref: false })
    }
  }
  onLost(settlement, failure)
}
