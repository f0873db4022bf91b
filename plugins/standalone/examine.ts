/** One cheap request to an upstream, for its list of models: does it answer, at this path, to this key? */
import type { Upstream } from '../core/upstream/upstream.js'
import { UpstreamAgent } from '../forward/undici.js'
import { endpoints, families, versionHeader, type Family } from '../protocols/index.js'
import { credentialOf } from '../upstreams/call.js'
import { upstreamOf } from '../upstreams/check-groups.js'
import { readUpstreams } from '../upstreams/read-upstream.js'
import type { GatewayConfig } from './config-types.js'
import { answerWords, failureWords } from './diagnosis.js'

interface Finding {
  readonly upstream: string
  /** Origin and path of the request. */
  readonly address: string
  readonly ok: boolean
  readonly words: string
  readonly ms: number
}

/** One finding for each upstream that is not simulated, and each family that groups use it for. */
export async function examineAll (config: GatewayConfig, timeoutMs: number): Promise<Finding[]> {
  const real = Object.entries(config.upstreams).flatMap(([name, entry]) => entry.simulate === true ? [] : [[name, entry] as const])
  const agent = new UpstreamAgent({ connect: { timeout: timeoutMs }, headersTimeout: timeoutMs, bodyTimeout: timeoutMs })
  try {
    const all = [...readUpstreams(Object.fromEntries(real)).values()]
    return await Promise.all(all.flatMap((upstream) => familiesOf(upstream, config).map(async (family) => await examine(
      agent, upstream, family
    ))))
  } finally {
    await agent.destroy()
  }
}

/** Families by its own `protocols`, or those that groups use it for; if there are none, the first one. */
function familiesOf ({ name, protocols }: Upstream, { groups, pools = {} }: GatewayConfig): Family[] {
  const names = new Set([
    name, ...Object.entries(pools).filter(([, { members }]) => members.some((member) => upstreamOf(member) === name)).map(([pool]) => pool),
  ])
  const used = Object.values(groups).flatMap(({ protocols: own, upstream, routes = [] }): readonly string[] => {
    if (routes.some((route) => names.has(route.upstream))) return own
    if (typeof upstream === 'object') return Object.entries(upstream).flatMap(([protocol, to]) => names.has(String(to)) ? [protocol] : [])
    return upstream === undefined || names.has(upstream) ? own : []
  })
  const spoken = protocols ?? new Set<string>(used)
  const found = new Set(endpoints.filter(({ protocol }) => spoken.has(protocol)).map(({ family }) => family))
  return found.size === 0 ? Object.values(families).slice(0, 1) : [...found]
}

async function examine (agent: InstanceType<typeof UpstreamAgent>, upstream: Upstream, family: Family): Promise<Finding> {
  // A base with a model in it has no list of models; the answer still shows whether name, TLS and key are right.
  const base = upstream.basePath.replace('{model}', 'model')
  const path = `${base}${upstream.verbatim ? '' : `/${family.prefix}`}/models`
  const startedAt = performance.now()
  const about = (ok: boolean, words: string): Finding => ({
    upstream: upstream.name, address: upstream.origin + path, ok, words, ms: Math.round(performance.now() - startedAt),
  })
  try {
    const own = await credential(upstream, family).catch(() => null)
    if (own === null) return about(false, 'its credential cannot be read from its file')
    const headers = { ...Object.fromEntries(upstream.headers), ...versionHeader(family), ...own }
    const { statusCode, headers: received, body } = await agent.request({
      origin: upstream.origin, path: upstream.query === '' ? path : `${path}?${upstream.query}`, method: 'GET', headers,
    })
    body.on('error', () => {}).destroy()
    if (upstream.forwards && (statusCode === 401 || statusCode === 403)) {
      return about(true, `answers (${statusCode}), and gets the keys of callers`)
    }
    const wrong = answerWords({
      status: statusCode, contentType: String(received['content-type'] ?? ''), location: String(received['location'] ?? ''),
    })
    return about(wrong === null, wrong ?? `answers (${statusCode})`)
  } catch (error) {
    return about(false, failureWords(String(Object(error).code)))
  }
}

async function credential (upstream: Upstream, family: Family): Promise<Record<string, string>> {
  const secret = await upstream.secret.current()
  return secret === null ? {} : Object.fromEntries([credentialOf(upstream, family, secret)])
}
