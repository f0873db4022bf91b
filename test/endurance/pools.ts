/** Pools: what their members and their callers do to them, one after the other. */
import { deadMember, type DeadOptions } from './pool-dead.js'
import { failingMembers, type FailingOptions } from './pool-failing.js'
import { leavers, type LeaversOptions } from './pool-leavers.js'
import { allReturn, type ReturnOptions } from './pool-return.js'
import type { Report } from './processes.js'

export interface PoolsOptions {
  readonly failing: FailingOptions
  readonly leaving: LeaversOptions
  readonly returning: ReturnOptions
  readonly dead: DeadOptions
  readonly hung: DeadOptions | null
}

export async function pools ({ failing, leaving, returning, dead, hung }: PoolsOptions): Promise<Report> {
  const reports = {
    failing: await failingMembers(failing),
    leaving: await leavers(leaving),
    returning: await allReturn(returning),
    dead: await deadMember(dead),
    ...hung !== null && { hung: await deadMember(hung) },
  }
  const all = Object.values(reports)
  const figures = Object.entries(reports).map(([name, { violations, slow, ...own }]) => [name, own])
  return { violations: all.flatMap(({ violations }) => violations), slow: all.flatMap(({ slow }) => slow), ...Object.fromEntries(figures) }
}
