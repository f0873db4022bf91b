import type { ErrorFacts, ErrorKind } from '../../protocols/types.js'
import type { Outcome } from '../types.js'
import { errorTable, type ErrorCode, type ErrorRow } from './table.js'

export interface ErrorExtra {
  /** Dotted path of the failing field of the request. */
  readonly param?: string | null
  /** After how long a retry makes sense; sent as `retry-after` in whole seconds. */
  readonly retryAfterMs?: number
  /** For the few codes whose status is an option. */
  readonly status?: number
  /** Sent along as they are. */
  readonly headers?: Readonly<Record<string, string>>
}

const nothing = {}

/**
 * One failure of one request. Always a fresh object: a shared one would carry a caller's details to the next. An `Error`
 * by its prototype and not by its constructor: it tells of a request and not of a place in the code, and the trace that the
 * constructor takes cost more than all else of a refusal (15 of 60 us).
 */
export class GatewayError implements Error {
  readonly name = 'GatewayError'
  readonly message: string
  readonly code: ErrorCode
  readonly statusCode: number
  readonly kind: ErrorKind
  readonly outcome: Outcome
  readonly retry: boolean
  readonly param: string | null
  readonly retryAfterMs: number | null
  readonly headers: Readonly<Record<string, string>>
  // Private: no log line tells of it.
  readonly #isFixed: boolean

  constructor (code: ErrorCode, values: Readonly<Record<string, string | number>> = nothing, extra: ErrorExtra = nothing) {
    const row: ErrorRow = errorTable[code]
    this.message = fill(row.message, values)
    this.code = code
    this.statusCode = extra.status ?? row.status
    this.kind = row.kind
    this.outcome = row.outcome
    this.retry = row.retry
    this.param = extra.param ?? null
    this.retryAfterMs = extra.retryAfterMs ?? null
    this.headers = extra.headers ?? {}
    this.#isFixed = extra === nothing && this.message === row.message
  }

  /** It says the same to every caller, but for the id of the request. */
  get isFixed (): boolean {
    return this.#isFixed
  }

  facts (requestId: string): ErrorFacts {
    const { statusCode: status, kind, code, message, param, retryAfterMs } = this
    return { status, kind, code, message, param, requestId, retryAfterMs }
  }
}

Object.setPrototypeOf(GatewayError.prototype, Error.prototype)

/** A fresh error of the table. `values` fill the `{name}` places of its message. */
export function gatewayError (code: ErrorCode, values?: Readonly<Record<string, string | number>>, extra?: ErrorExtra): GatewayError {
  return new GatewayError(code, values, extra)
}

function fill (message: string, values: Readonly<Record<string, string | number>>): string {
  if (!message.includes('{')) return message
  return message.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? name))
}
