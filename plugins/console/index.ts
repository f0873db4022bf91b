import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import Fastify from 'fastify'
import { OptionError } from '../core/config/options.js'
import { joinGateway } from '../core/gateway.js'
import { gatewayPlugin } from '../core/gateway-plugin.js'
import { mergedStatus, type UpstreamsStatus } from '../core/upstream/upstream-status.js'
import { budgetTables } from './budget-rows.js'
import { costDaysOf, type CostDays } from './cost-days.js'
import { History } from './history.js'
import { checkConsoleOptions, hostsOf, type ConsoleOptions } from './options.js'
import { Readings } from './readings.js'
import { servePage } from './serve-page.js'

export { hostsOf, type ConsoleOptions } from './options.js'

async function registerConsole (app: FastifyInstance, options: ConsoleOptions): Promise<void> {
  checkConsoleOptions(options)
  const gateway = joinGateway(app)
  app.addHook('onReady', async () => {
    if (gateway.metrics.length === 0) throw new OptionError('console', 'needs the metrics plugin')
    costDays()
  })
  const readings = new Readings(() => gateway.metrics)
  // Read each time: the metrics are registered later.
  const costDays = (): CostDays => costDaysOf(gateway.metrics)
  const history = new History(readings, () => costDays().note())
  app.addHook('onClose', async () => history.stop())
  const upstreams = async (): Promise<UpstreamsStatus> => {
    const others = await gateway.otherUpstreams()
    return mergedStatus([gateway.upstreamsStatus(), ...others])
  }
  const budgets = budgetTables(async () => await gateway.budgetsStatus())
  const shown = { readings, costDays, history, upstreams, budgets, hosts: hostsOf(options) }

  if (options.path !== undefined) servePage(app, options.path, shown)
  if (options.listen === undefined) return
  const own = Fastify()
  servePage(own, '/', shown)
  app.addHook('onClose', async () => await own.close())
  // A copy, because Fastify changes the object.
  const address = await own.listen({ ...options.listen })
  app.log.info({ console: address }, 'the console listens')
}

/**
 * A page for people without Grafana: shows the metrics live, from the same cells. Off unless registered. It asks for no credential, so put
 * it where callers cannot reach it: on a listener of its own, or at a path that you protect.
 */
export const consolePage: FastifyPluginAsync<ConsoleOptions> = gatewayPlugin('console', registerConsole)
