import { gatewayError, type GatewayError } from '../core/errors/gateway-error.js'
import type { ErrorCode } from '../core/errors/table.js'

/** The data of a refusal, as sent between threads. */
export interface BodyRefusalFacts {
  /**
   * Why a body was refused, as a label: a keyword of JSON Schema, or one of `media_type`, `encoding`, `empty`, `too_large`, `bom`, `utf8`,
   * `depth`, `values`, `json`, `duplicate_key`, `models`, `form`, `unchecked`. A closed set, whatever callers send.
   */
  readonly keyword: string
  readonly code: ErrorCode
  readonly values: Readonly<Record<string, string | number>>
  /** Dotted path of the failing field. */
  readonly param: string | null
}

/** Why a body is refused. */
export class BodyRefusal {
  readonly keyword: string
  readonly facts: BodyRefusalFacts

  constructor (facts: BodyRefusalFacts) {
    this.keyword = facts.keyword
    this.facts = facts
  }

  /** A new error object each time. */
  get error (): GatewayError {
    const { code, values, param } = this.facts
    return param === null ? gatewayError(code, values) : gatewayError(code, values, { param })
  }
}

export function refused (
  keyword: string, code: ErrorCode, values: BodyRefusalFacts['values'] = {}, param: string | null = null
): BodyRefusal {
  return new BodyRefusal({ keyword, code, values, param })
}
