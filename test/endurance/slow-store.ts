/** A disk that stands still, a log that nobody reads, a Redis that is far away: none holds up whoever does not need it. */
import { slowDisk, type SlowDisk } from './slow-disk.js'
import { farRedis, type FarRedis } from './far-redis.js'
import { unreadLog, type UnreadLog } from './unread-log.js'
import type { Report } from './processes.js'

export interface SlowStore {
  readonly disk: SlowDisk
  readonly log: UnreadLog
  readonly redis: FarRedis
}

export async function slowStore ({ disk, log, redis }: SlowStore): Promise<Report> {
  const reports = { disk: await slowDisk(disk), log: await unreadLog(log), redis: await farRedis(redis) }
  const all = Object.values(reports)
  const figures = Object.entries(reports).map(([name, { violations, slow, ...own }]) => [name, own])
  return { violations: all.flatMap(({ violations }) => violations), slow: all.flatMap(({ slow }) => slow), ...Object.fromEntries(figures) }
}
