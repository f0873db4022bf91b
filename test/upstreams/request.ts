/** A model request as the upstreams plugin meets it. */
import { ModelCall } from '../../plugins/core/call/model-call.js'
import type { Upstream } from '../../plugins/core/upstream/upstream.js'
import { createResolve } from '../../plugins/core/url/resolve.js'
import type { UpstreamOptions } from '../../plugins/upstreams/options.js'
import { readUpstreams } from '../../plugins/upstreams/read-upstream.js'

const resolve = createResolve('')

export interface Asked {
  readonly method?: string
  readonly body?: string | Buffer
  readonly model?: string | null
  readonly headers?: Readonly<Record<string, string>>
  readonly key?: string
}

export function requestTo (url: string, { method = 'POST', body, model, headers = {}, key = 'caller' }: Asked = {}): ModelCall {
  const resolved = resolve(method, url, headers)
  if (resolved?.kind !== 'endpoint') throw new Error(url)
  const llm = new ModelCall(resolved)
  llm.auth.key = { id: key, group: 'all', disabled: false, expiresAt: null, limits: {} }
  if (body !== undefined) llm.body.bytes = Buffer.from(body)
  if (model !== undefined) llm.model = model
  return llm
}

export function upstreamOf (options: UpstreamOptions, name = 'u'): Upstream {
  const upstream = readUpstreams({ [name]: options }).get(name)
  if (upstream === undefined) throw new Error(name)
  return upstream
}
