import type { ErrorFacts, ErrorKind, Family } from '../../protocols/types.js'
import type { Outcome } from '../types.js'
import { errorTable, type ErrorCode, type ErrorRow } from './table.js'

/** The kind of error, and whether a retry may help, if they differ from its row of the table. */
export interface ErrorNature {
  readonly kind?: ErrorKind
  readonly retry?: boolean
}

interface ErrorExtra extends ErrorNature {
  /** Dotted path of the failing field of the request. */
  readonly param?: string | null
  /** Milliseconds after which a retry makes sense; sent as `retry-after` in whole seconds. */
  readonly retryAfterMs?: number
  /** Replaces the status of the row, for codes whose status is an option. */
  readonly status?: number
  /** Further headers of the reply. */
  readonly headers?: Readonly<Record<string, string>>
}

const nothing = {}

/** One failure of one request. Always a fresh object: a shared one would carry a caller's details to the next. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError'
  readonly code: ErrorCode
  readonly statusCode: number
  readonly kind: ErrorKind
  readonly outcome: Outcome
  readonly retry: boolean
  readonly param: string | null
  readonly retryAfterMs: number | null
  readonly headers: Readonly<Record<string, string>>

  constructor (code: ErrorCode, values: Readonly<Record<string, string | number>> = nothing, extra: ErrorExtra = nothing) {
    const row: ErrorRow = errorTable[code]
    super(fill(row.message, values))
    this.code = code
    this.statusCode = extra.status ?? row.status
    this.kind = extra.kind ?? row.kind
    this.outcome = row.outcome
    this.retry = extra.retry ?? row.retry
    this.param = extra.param ?? null
    this.retryAfterMs = extra.retryAfterMs ?? null
    this.headers = extra.headers ?? {}
  }

  facts (requestId: string): ErrorFacts {
    const { statusCode: status, kind, code, message, param, retryAfterMs } = this
    return { status, kind, code, message, param, requestId, retryAfterMs }
  }
}

/**
 * A fresh error of the table. `values` fill the `{name}` places of its message. Without a stack trace: the error is about a request
 * and not about a place in the code, and a trace costs more than everything else of a refusal.
 */
export function gatewayError (code: ErrorCode, values?: Readonly<Record<string, string | number>>, extra?: ErrorExtra): GatewayError {
  const limit = Error.stackTraceLimit
  // With frozen intrinsics it cannot be set.
  Reflect.set(Error, 'stackTraceLimit', 0)
  const error = new GatewayError(code, values, extra)
  Reflect.set(Error, 'stackTraceLimit', limit)
  return error
}

/** An error in the family's envelope. */
export function errorText (family: Family, error: GatewayError, requestId: string): string {
  return JSON.stringify(family.errorBody(error.facts(requestId)))
}

function fill (message: string, values: Readonly<Record<string, string | number>>): string {
  if (!message.includes('{')) return message
  return message.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? name))
}
