import type { Balances, Ledger, LedgerRecord } from './types.js'

const atOnce = 100

/**
 * Settles again what killed processes recorded last. Whatever was settled already stays as it is: a settlement counts once.
 */
export async function recover (ledger: Ledger, balances: Balances): Promise<number> {
  let count = 0
  let batch: Array<Promise<void>> = []
  for await (const record of ledger.unsettled()) {
    batch.push(settle(balances, record))
    count += 1
    if (batch.length < atOnce) continue
    await Promise.all(batch)
    batch = []
  }
  await Promise.all(batch)
  return count
}

async function settle (balances: Balances, { id, key, group, charged, late }: LedgerRecord): Promise<void> {
  if (key !== null && group !== null) await balances.settle({ id, group, key, tokens: charged, late })
}
