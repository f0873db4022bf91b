import type { IncomingHttpHeaders } from 'node:http'
import { usageHiding } from '../protocols/index.js'
import { gatewayError, type GatewayError } from './errors/gateway-error.js'
import type { ModelCall } from './model-call.js'
import { parametersOf } from './url/query.js'

/** 400 where a metered request asks for a reply that would hide its usage, null for any other: a caller could choose what it pays. */
export function checkHiding ({ endpoint, url }: ModelCall, headers: IncomingHttpHeaders): GatewayError | null {
  if (endpoint.metered === 'no') return null
  const name = hidingParameter(usageHiding.parameters, url) ?? hidingHeader(usageHiding.headers, headers)
  return name === null ? null : gatewayError('usage_hidden', { name }, { param: name })
}

function hidingParameter (parameters: ReadonlyMap<string, readonly string[]>, url: string): string | null {
  const mark = url.indexOf('?')
  if (mark < 0) return null
  const found = parametersOf(url.slice(mark)).find(([name, value]) => parameters.get(name)?.includes(value) === false)
  return found?.[0] ?? null
}

function hidingHeader (known: ReadonlyMap<string, RegExp>, headers: IncomingHttpHeaders): string | null {
  for (const name in headers) {
    // A server behind may read `_` as `-`.
    const plain = name.includes('_') ? name.replaceAll('_', '-') : name
    if (known.get(plain)?.test(String(headers[name])) === true) return plain
  }
  return null
}
