import { gatewayError, type ErrorExtra, type GatewayError } from '../core/errors/gateway-error.js'
import type { ErrorCode } from '../core/errors/table.js'

/**
 * What a body was refused for, as a label: a keyword of JSON Schema, or one of `media_type`, `encoding`, `empty`,
 * `too_large`, `bom`, `utf8`, `depth`, `json`, `duplicate_key`, `form`. A closed set, whatever callers send.
 */
export class Rejection {
  readonly keyword: string
  readonly error: GatewayError

  constructor (keyword: string, error: GatewayError) {
    this.keyword = keyword
    this.error = error
  }
}

export function reject (keyword: string, code: ErrorCode, values: Readonly<Record<string, string | number>> = {}, extra: ErrorExtra = {}): Rejection {
  return new Rejection(keyword, gatewayError(code, values, extra))
}
