import type { FastifyBaseLogger, FastifyInstance, FastifyPluginAsync } from 'fastify'
import { checkOptions, OptionError } from '../core/config/options.js'
import { joinGateway } from '../core/gateway.js'
import { gatewayPlugin } from '../core/gateway-plugin.js'
import { identifyFirst } from '../core/call/identify.js'
import { writeLog } from '../core/write-log.js'
import { refusedUrlLine, requestLine } from './line.js'

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const

export interface LogOptions {
  /**
   * The level of the lines.
   * @defaultValue `info`
   */
  level?: typeof levels[number]
}

async function registerLog (app: FastifyInstance, options: LogOptions): Promise<void> {
  checkOptions('log', options, { 'a string': ['level'] })
  const { level = 'info' } = options
  if (!levels.includes(level)) throw new OptionError('log.level', `must be one of ${levels.join(', ')}`)
  const gateway = joinGateway(app)
  identifyFirst(app, gateway)
  gateway.settlement.add('log', (llm, request) => {
    if (writes(request.log, level)) request.log[level]({ llm: requestLine(llm) }, 'model request')
  })
  gateway.urlRefused = (request, family, error) => {
    writeLog(request.log, level, { llm: refusedUrlLine(request.id, family, error) }, 'refused path')
  }
}

/** Pino tells which levels are on. The logger of an app without logging has one function for all levels. */
function writes (log: FastifyBaseLogger, level: string): boolean {
  if ('isLevelEnabled' in log && typeof log.isLevelEnabled === 'function') return log.isLevelEnabled(level) === true
  return log.trace !== log.fatal
}

/**
 * One structured line for each model request, at its end, and for each request whose path leads to no endpoint, in the host's own logger.
 */
export const log: FastifyPluginAsync<LogOptions> = gatewayPlugin('log', registerLog)
