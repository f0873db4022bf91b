import type { FastifyBaseLogger } from 'fastify'

type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal'

/**
 * Writes a line where a request ends or fails. The logger is the host's and may fail itself, as on a full disk: the request must go on
 * then, and there is nobody to report to.
 */
export function writeLog (log: FastifyBaseLogger, level: LogLevel, fields: object, message: string): void {
  try {
    log[level](fields, message)
  } catch {
    // There is no other place to write to.
  }
}
