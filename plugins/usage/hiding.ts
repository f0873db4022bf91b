import type { IncomingHttpHeaders } from 'node:http'
import { usageHiding } from '../protocols/index.js'
import { gatewayError, type GatewayError } from '../core/errors/gateway-error.js'
import type { ModelCall } from '../core/call/model-call.js'
import { mayBeReadAs, parametersOf, queryOf } from '../core/url/query.js'

const named = [...usageHiding.parameters].map(([name, harmless]) => ({ name, harmless, isMeant: mayBeReadAs([name]) }))
const isHiding = mayBeReadAs([...usageHiding.parameters.keys()])

/** 400 if a metered request asks for a reply that would hide its usage, null otherwise: a caller could choose what it pays. */
export function checkHiding ({ endpoint, url }: ModelCall, headers: IncomingHttpHeaders): GatewayError | null {
  if (endpoint.metered === 'no') return null
  const name = hidingParameter(url) ?? hidingHeader(usageHiding.headers, headers)
  return name === null ? null : gatewayError('usage_hidden', { name }, { param: name })
}

function hidingParameter (url: string): string | null {
  const query = queryOf(url)
  if (query === '') return null
  const found = parametersOf(query, isHiding)
  const hiding = named.find(({ harmless, isMeant }) => found.some(([name, value]) => isMeant(name) && !harmless.includes(value)))
  return hiding?.name ?? null
}

function hidingHeader (known: ReadonlyMap<string, RegExp>, headers: IncomingHttpHeaders): string | null {
  for (const name in headers) {
    // A server behind the gateway may read `_` as `-`.
    const plain = name.includes('_') ? name.replaceAll('_', '-') : name
    if (known.get(plain)?.test(String(headers[name])) === true) return plain
  }
  return null
}
