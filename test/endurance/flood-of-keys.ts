/** 20 made-up keys for each real one: the real ones stay in memory, and the store is asked no more than it may be. */
import { flood } from '../auth/store-load.js'
import type { Report } from './processes.js'

const maxLoadsPerSecond = 1_000

export async function floodOfKeys ({ rounds }: { readonly rounds: number }): Promise<Report> {
  const { right, served, hits, renewals, storeLookups, allowed, heapBytes, ...figures } = await flood('lmdb', rounds, maxLoadsPerSecond)
  const violations: string[] = []
  if (served < right) violations.push(`${right - served} requests with a real key were refused`)
  if (hits < right - renewals) violations.push(`${hits} of ${right} were in memory, ${renewals} may have been too old`)
  if (storeLookups > allowed) violations.push(`${storeLookups} look-ups, ${allowed} are allowed`)
  if (heapBytes > 5 * 1024 * 1024) violations.push(`the heap grew by ${heapBytes} bytes`)
  return { violations, slow: [], right, served, hits, storeLookups, allowed, heapBytes, ...figures }
}
