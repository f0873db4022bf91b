import { gatewayError, type GatewayError } from '../core/errors/gateway-error.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { Upstream } from '../core/upstream/upstream.js'
import { mayBeReadAs, parametersOf } from '../core/url/query.js'

const modelPlace = '{model}'
const isModel = mayBeReadAs(['model'])

/** Servers remove such a segment together with the one before it, some of them after decoding. */
const dotSegment = /(?:^|[/\\])\.{1,2}(?:[/\\]|$)/
/** Half of a surrogate pair cannot be encoded in a URL: `encodeURIComponent` throws. */
const halfCharacter = /\p{Surrogate}/u

/**
 * Path and query as an upstream gets them; `model` is its own name for the model. A refusal if its address needs a model and the request
 * names none.
 */
export function pathAt (upstream: Upstream, llm: ModelCall, model: string | null): string | GatewayError {
  const { mountLength, url } = llm
  const start = upstream.verbatim ? url.indexOf('/', mountLength + 1) : mountLength
  const mark = url.indexOf('?', start)
  const tail = withModel(mark < 0 ? url.slice(start) : url.slice(start, mark), llm, model)
  const query = mark < 0 ? '' : url.slice(mark + 1)
  const path = upstream.basePath + tail + queryAt(upstream, query === '' || model === llm.model ? query : withoutModel(query))
  if (!upstream.basePath.includes(modelPlace)) return path
  if (model === null) return gatewayError('model_required')
  if (dotSegment.test(model) || halfCharacter.test(model)) return gatewayError('model_not_found', {}, { param: llm.endpoint.modelField })
  return path.replace(modelPlace, () => encodeURIComponent(model))
}

/** If the model is in the path and has another name upstream, that name; every other byte as it was. */
function withModel (tail: string, { endpoint, model }: ModelCall, sent: string | null): string {
  if (sent === null || sent === model || endpoint.modelField !== null) return tail
  const [root = ''] = endpoint.tail
  const start = tail.indexOf(`/${root}/`) + root.length + 2
  const end = endpoint.action === null ? tail.length : tail.length - endpoint.action.length - 1
  return tail.slice(0, start) + inPath(sent.startsWith(`${root}/`) ? sent.slice(root.length + 1) : sent) + tail.slice(end)
}

/** A model as part of a path, in which it may contain `/`, `:` and `@`. */
function inPath (model: string): string {
  return encodeURIComponent(model).replace(/%(?:2F|3A|40)/g, decodeURIComponent)
}

/** A caller's own name of a model that is called otherwise upstream: servers that prefer the query's would take it for another model. */
function withoutModel (query: string): string {
  return query.split('&').filter((pair) => parametersOf(`?${pair}`, isModel).length === 0).join('&')
}

/** The upstream's own parameters replace the caller's of the same name, in any case, as for some servers. Others stay byte for byte. */
function queryAt ({ query: fixed, queryNames }: Upstream, callers: string): string {
  if (fixed === '') return callers === '' ? '' : `?${callers}`
  const left = callers.split('&').filter((pair) => pair !== '' && !queryNames.has(nameOf(pair).toLowerCase()))
  return `?${[fixed, ...left].join('&')}`
}

function nameOf (pair: string): string {
  const [written = ''] = pair.split('=', 1)
  try {
    return decodeURIComponent(written.replaceAll('+', ' '))
  } catch {
    return written
  }
}
