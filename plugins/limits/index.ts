import fp from 'fastify-plugin'
import type { FastifyInstance } from 'fastify'
import { checkOptions } from '../errors/options.js'
import { gatewayError } from '../errors/gateway-error.js'
import { refuse } from '../errors/refuse.js'
import { joinGateway } from '../request.js'
import type { Balances, Ledger } from '../state/types.js'

export interface LimitsOptions {
  balances?: Balances
  ledger?: Ledger
  /** Status of a spent balance. Default 403: clients retry 429 for up to a minute. */
  balanceStatus?: 402 | 403 | 429
}

/** Refuses what a key or its group may not spend (DESIGN 11). Registered after auth; without it nothing is limited. */
async function limitsPlugin (app: FastifyInstance, options: LimitsOptions): Promise<void> {
  checkOptions('limits', options, { balances: 'an object', ledger: 'an object', balanceStatus: 'anything' })
  const gateway = joinGateway(app)
  const status = options.balanceStatus ?? 403

  app.addHook('onRequest', (request, reply, done) => {
    const { llm } = request
    if (llm === null || llm.key === null || llm.group === null) return done()
    if (llm.key.limits.balance !== 0 && llm.group.limits.balance !== 0) return done()
    gateway.recorder.limitRejected(llm.group.id, 'balance')
    refuse(request, reply, llm.endpoint.family, gatewayError('insufficient_quota', {}, { status }))
  })
}

export const limits = fp(limitsPlugin, { fastify: '5.x', name: 'llm-gateway-limits' })
export default limits
