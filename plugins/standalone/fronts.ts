import { transportDefaults } from '../forward/options.js'
import type { GatewayConfig } from './config-types.js'
import type { ListenAddress } from './config-values.js'
import { Front, type Handler } from './front.js'

/** The ports of the process: the gateway's, and the console's if it has its own. */
export interface Fronts {
  readonly address: ListenAddress
  readonly consoleAddress: ListenAddress | null
  /** Applies the timeouts of a configuration that is read later. */
  readonly waitFor: (config: GatewayConfig) => void
  readonly close: () => Promise<void>
}

/**
 * Rejects if an address is taken; no port is open then. `consolePath`: path of the console in the app. `dropped`: called for each
 * connection above the allowed number.
 */
export async function openFronts (
  config: GatewayConfig, wanted: ListenAddress, handle: Handler, consolePath: string, dropped: () => void
): Promise<Fronts> {
  const requestTimeoutMs = config.listen?.requestTimeoutMs ?? 60_000
  const gateway = new Front(handle, requestTimeoutMs)
  const { maxConnections } = config.overload || {}
  if (maxConnections !== undefined) gateway.limit(maxConnections, dropped)
  const own = new Front(below(config.console?.path ?? consolePath, handle), requestTimeoutMs)
  const waitFor = ({ forward }: GatewayConfig): void => {
    for (const front of [gateway, own]) front.cutAfter(forward?.idleTimeoutMs ?? transportDefaults.idleTimeoutMs)
  }
  const close = async (): Promise<void> => {
    await Promise.all([gateway.close(), own.close()])
  }
  try {
    waitFor(config)
    const { listen } = config.console ?? {}
    const address = await gateway.listen(wanted)
    const consoleAddress = listen === undefined ? null : await own.listen({ host: '127.0.0.1', ...listen })
    return { address, consoleAddress, waitFor, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** The page and what it reads. */
const pages = /^\/(?:data|upstreams)?(?:\?|$)/

/**
 * Maps these to the app's path below `path`, and nothing else: the app's refusal would tell the path, by which the page can be had from the
 * gateway's own port.
 */
function below (path: string, handle: Handler): Handler {
  const base = path.replace(/\/+$/, '')
  return (request, response) => {
    const url = String(request.url)
    if (!pages.test(url) || !/^(?:GET|HEAD)$/.test(String(request.method))) {
      response.writeHead(404, { 'content-type': 'text/plain', 'cache-control': 'no-store' }).end('Not found\n')
      return
    }
    request.url = /^\/(?:\?|$)/.test(url) ? path + url.slice(1) : base + url
    handle(request, response)
  }
}
