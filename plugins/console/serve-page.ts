import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { BudgetTable } from './budget-rows.js'
import type { CostDays } from './cost-days.js'
import { byHistogram, type History } from './history.js'
import { pageRoute } from '../core/door/own-host.js'
import type { UpstreamsStatus } from '../core/upstream/upstream-status.js'
import { memberRows } from './member-rows.js'
import { createPage } from './page.js'
import type { Readings } from './readings.js'
import { boundsOf, tables } from './tables.js'

const startedAt = Date.now() - Math.round(process.uptime() * 1_000)

/** What the page shows. */
interface Shown {
  readonly readings: Readings
  readonly costDays: () => CostDays
  readonly history: History
  readonly upstreams: () => Promise<UpstreamsStatus>
  readonly budgets: () => Promise<BudgetTable>
  /** The host names that it answers to; null for any. */
  readonly hosts: readonly string[] | null
}

/**
 * Serves the page at `path` and its data below it: the points after `?after=`, if `?of=` is this process, or all of them if it was another
 * worker; the current tables, with the costs of the range `?costs=`, and the state of upstreams and budgets. Routes like that of a scrape:
 * no credential, no log lines, no caching.
 */
export function servePage (app: FastifyInstance, path: string, { readings, costDays, history, upstreams, budgets, hosts }: Shown): void {
  const page = createPage()
  const base = path === '/' ? '' : path.replace(/\/+$/, '')
  const route = pageRoute('console.hosts', hosts)

  app.get(path, route, async (_request: FastifyRequest, reply: FastifyReply) => {
    reply.headers({ 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store', ...page.headers })
    return page.html
  })

  app.get(`${base}/data`, route, async (request: FastifyRequest, reply: FastifyReply) => {
    const { searchParams } = new URL(request.url, 'http://localhost')
    const ofCosts = costDays().readings(searchParams.get('costs'))
    const isOurs = Number(searchParams.get('of') ?? startedAt) === startedAt
    reply.header('cache-control', 'no-store')
    return {
      startedAt,
      bounds: byHistogram((name) => boundsOf(readings, name)),
      points: history.after(isOurs ? Number(searchParams.get('after')) : 0),
      tables: { ...tables(readings, ofCosts), members: memberRows(await upstreams()), ...await budgets() },
    }
  })
  app.get(`${base}/upstreams`, route, async (_request: FastifyRequest, reply: FastifyReply) => {
    reply.header('cache-control', 'no-store')
    return await upstreams()
  })
}
