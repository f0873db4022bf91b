import { checkOptions, OptionError } from '../core/options.js'
import { givenUpstream } from '../core/given-upstream.js'
import type { ModelCall } from '../core/model-call.js'
import type { Upstream } from '../core/types.js'
import { addressProblem } from '../core/url/upstream-address.js'

export interface UpstreamOptions {
  /** Base address. A version segment at its end is the gateway's business and dropped. */
  url: string
  /** The provider's secret, or `forward`: the caller's own travels on. Default: none is sent; undefined, as of a variable that is not set, fails the start. */
  credential?: string | undefined
}

/** Throws `LLM_GATEWAY_OPTION` naming the field. */
export function readUpstreams (options: Readonly<Record<string, UpstreamOptions>>): Map<string, Upstream> {
  return new Map(Object.entries(options).map(([name, upstream]) => [name, readUpstream(name, upstream)]))
}

function readUpstream (name: string, options: UpstreamOptions): Upstream {
  const at = `upstreams.${name}`
  // By name, too: a misspelled credential would send none.
  checkOptions(at, options, { url: 'anything', credential: 'anything' })
  const { url, credential } = options
  const problem = addressProblem(url)
  if (problem !== null) throw new OptionError(`${at}.url`, problem)
  const { origin, host, pathname } = new URL(url)
  if ('credential' in options && (typeof credential !== 'string' || !/^[\x21-\x7e]+$/.test(credential))) {
    throw new OptionError(`${at}.credential`, 'must be visible ASCII without blanks')
  }
  const forwards = credential === 'forward'
  const basePath = pathname.replace(/(?:\/(?:v1|v1beta|v1alpha))?\/*$/, '')
  return { name, origin, host, basePath, forwards, credential: forwards ? null : credential ?? null }
}

/** Where a request goes: the upstream of its group, or the only one there is; null where that is undecided. */
export function upstreamFor (llm: ModelCall, upstreams: ReadonlyMap<string, Upstream>): Upstream | null {
  if ((llm.group?.upstream ?? null) !== null) return upstreams.get(givenUpstream(llm) ?? '') ?? null
  const [only = null, ...others] = upstreams.values()
  return others.length === 0 ? only : null
}
