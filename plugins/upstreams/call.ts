import { textsAtAny } from '../core/body/json-text.js'
import { GatewayError } from '../core/errors/gateway-error.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { Call, Called, Header, Upstream } from '../core/upstream/upstream.js'
import { modelPaths, type Family } from '../protocols/index.js'
import { pathAt } from './address.js'
import { renameAt, renameModel } from './rename-model.js'

/** The request as one upstream gets it. `secret`: the upstream's current one, null for none. */
export function callOf (upstream: Upstream, llm: ModelCall, secret: string | null, headersTimeoutMs: number | null): Called {
  const { endpoint, model } = llm
  const sent = model === null ? null : upstream.models.get(model) ?? model
  const path = pathAt(upstream, llm, sent)
  if (path instanceof GatewayError) return path
  countFor(upstream, llm)
  return { upstream, path, body: bodyOf(upstream, llm), headers: headersOf(upstream, endpoint.family, llm, secret), headersTimeoutMs }
}

/** The same call, asking for a reply without compression, so that its first events can be read. */
export function uncompressed (call: Call): Call {
  return { ...call, headers: [...call.headers, ['accept-encoding', 'identity']] }
}

/** From here on the request counts for this upstream. */
export function countFor ({ name, models, forwards }: Upstream, llm: ModelCall): void {
  const { routing, model } = llm
  routing.upstream = name
  routing.sentModel = model === null ? null : models.get(model) ?? null
  routing.forwardsSecret = forwards
}

function bodyOf ({ models }: Upstream, { body, endpoint, model }: ModelCall): Buffer | null {
  const bytes = body.outgoing ?? body.bytes
  if (bytes !== null && body.modelAt !== null) return renameAt(bytes, body.modelAt, models.get(model ?? ''))
  if (bytes === null || models.size === 0) return bytes
  const places = body.modelPlaces ?? textsAtAny(bytes, modelPaths(endpoint))
  return renameModel(bytes, places, models, endpoint.family.modelPrefix)
}

/** Made once for each secret: V8 would have to flatten a newly joined text each time. */
interface Made {
  readonly secret: string
  readonly headers: readonly Header[]
}

const made = new WeakMap<Upstream, Map<Family, Made>>()

function headersOf (upstream: Upstream, family: Family, llm: ModelCall, ownSecret: string | null): readonly Header[] {
  const secret = upstream.forwards ? llm.auth.secret : ownSecret
  if (secret === null) return upstream.headers
  if (upstream.forwards) return [...upstream.headers, credentialOf(upstream, family, secret)]
  const byFamily = made.get(upstream) ?? new Map<Family, Made>()
  const known = byFamily.get(family)
  if (known?.secret === secret) return known.headers
  const headers = [...upstream.headers, credentialOf(upstream, family, secret)]
  made.set(upstream, byFamily.set(family, { secret, headers }))
  return headers
}

export function credentialOf ({ credentialHeader }: Upstream, family: Family, secret: string): Header {
  if (credentialHeader === null) return family.upstreamHeader(secret)
  return [credentialHeader, credentialHeader === 'authorization' ? `Bearer ${secret}` : secret]
}
