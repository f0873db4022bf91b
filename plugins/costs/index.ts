import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { gatewayError } from '../core/errors/gateway-error.js'
import { refuse } from '../core/errors/refuse.js'
import { joinGateway } from '../core/gateway.js'
import { gatewayPlugin } from '../core/gateway-plugin.js'
import { modelCallOf } from '../core/call/model-call.js'
import { OptionError } from '../core/config/options.js'
import { atMost } from './at-most.js'
import { addCostHeader } from './cost-header.js'
import { Forecast } from './forecast.js'
import { readOptions, type CostsOptions } from './options.js'
import { costOf } from './pricing.js'

export type { CostsOptions, PriceOptions } from './options.js'

const none: readonly never[] = []

async function registerCosts (app: FastifyInstance, options: CostsOptions): Promise<void> {
  const { table, header, factorOf } = readOptions(options)
  if (header && !table.hasEntries) throw new OptionError('costs.header', 'needs prices')
  const gateway = joinGateway(app)
  const forecast = new Forecast({
    table, takersOf: (llm) => gateway.destinationOf(llm)?.upstreams ?? none, factorOf, allowsUnpriced: options.unpriced === 'allow',
  })
  gateway.pricing = {
    currency: table.currency,
    hasPrices: table.hasEntries,
    ...options.unpriced === 'allow' && { unpriced: options.unpriced },
    forecast: (llm, input, output) => forecast.forecast(llm, input, output),
    estimate: (llm, input, output) => forecast.estimate(llm, input, output),
    atMost: (llm) => atMost(table, llm, factorOf(llm.routing.upstream)),
  }
  // If the option is not set and a budget is in money, the limits plugin refuses: it must know what a request may cost.
  if (options.unpriced === 'refuse') {
    app.addHook('preHandler', function llmGatewayCosts (request, reply, done) {
      const llm = modelCallOf(request)
      if (llm === null || llm.endpoint.metered === 'no' || forecast.isPriced(llm)) {
        done()
        return
      }
      gateway.recorder.limitRejected(llm.auth.group?.id ?? 'none', 'price')
      refuse(reply, llm.endpoint.family, gatewayError('model_not_priced'))
    })
  }
  if (header) addCostHeader(app, (llm) => costOf(table, llm, factorOf(llm.routing.upstream))?.exact.amount ?? null)
  gateway.settlement.add('costs', (llm) => { llm.cost = costOf(table, llm, factorOf(llm.routing.upstream)) })
}

/**
 * Computes the exact cost of each request: its tokens and everything else that its reply counts, at the prices of the model that replied.
 * Prices are those of the lists at the time at which the request arrived; a request keeps the lists that it began with.
 */
export const costs: FastifyPluginAsync<CostsOptions> = gatewayPlugin('costs', registerCosts)
