/** Reports that a share of a budget is spent: in the log, in a metric, and to the host. */
import type { FastifyBaseLogger } from 'fastify'
import type { Reached, Settled, Settlement } from '../core/balances/types.js'
import type { Recorder } from '../core/recorder.js'
import { writeLog } from '../core/write-log.js'
import { readBucketId, type BucketWords } from './budgets.js'

/** 50, 80 or 100 percent of a budget are spent. Once per period, whichever process saw it. */
export interface BudgetEvent extends BucketWords {
  readonly group: string
  /** Null for a budget of the group. */
  readonly key: string | null
  readonly percent: number
}

export type OnBudget = (event: BudgetEvent) => unknown

type Owner = Pick<Settlement, 'group' | 'key'>

/** Returns the listener for what settlements make budgets reach. It never throws: what the host's hook or store does wrong is logged. */
export function budgetWarnings (
  recorder: () => Recorder, log: FastifyBaseLogger, onBudget: OnBudget | null
): (owner: Owner, settled: Settled) => void {
  const fail = (err: unknown): void => writeLog(log, 'error', { err }, 'limits.onBudget failed')
  const tell = (owner: Owner, reached: Reached): void => {
    try {
      const event = eventOf(owner, reached)
      recorder().budgetReached(event.group, event.period, event.percent)
      writeLog(log, 'warn', { budget: event }, `a budget has reached ${event.percent} %`)
      Promise.resolve(onBudget?.(event)).catch(fail)
    } catch (error) {
      fail(error)
    }
  }
  return (owner, settled) => {
    // A store of the host's may resolve with whatever its database said.
    if (Array.isArray(settled)) for (const reached of settled) tell(owner, reached)
  }
}

function eventOf ({ group, key }: Owner, { scope, bucket, percent }: Reached): BudgetEvent {
  return { group, key: scope === 'key' ? key : null, ...readBucketId(bucket), percent }
}
