import { setTimeout as pause } from 'node:timers/promises'
import type { Balances, Ledger, LedgerRecord } from './types.js'

const atOnce = 100
const retryMs = 250

/**
 * Settles again what killed processes recorded last. Whatever was settled already stays as it is: a settlement counts once.
 * Where the store is away it is asked again until it is back, or until `closing`, which rejects.
 */
export async function recover (ledger: Ledger, balances: Balances, closing: AbortSignal): Promise<number> {
  let count = 0
  let batch: Array<Promise<void>> = []
  for await (const record of ledger.unsettled()) {
    batch.push(settle(balances, record, closing))
    count += 1
    if (batch.length < atOnce) continue
    await Promise.all(batch)
    batch = []
  }
  await Promise.all(batch)
  return count
}

async function settle (balances: Balances, { id, key, group, charged, late }: LedgerRecord, closing: AbortSignal): Promise<void> {
  if (key === null || group === null) return
  for (;;) {
    try {
      return await balances.settle({ id, group, key, tokens: charged, late })
    } catch {
      await pause(retryMs, undefined, { signal: closing, ref: false })
    }
  }
}
