import Fastify from 'fastify'
import llmGateway from '../../plugins/index.js'
import { startUpstream, type Upstream } from '../helpers/upstream.js'

export interface Setup {
  readonly origin: string
  readonly upstream: Upstream
}

interface Scope {
  teardown: (close: () => Promise<void>) => unknown
}

export const key = 'sk-suite-good'
/** A key that is known, of a group that may use nothing through a gateway. */
export const refusedKey = 'sk-suite-refused'

/** The gateway as a host would set it up, in front of the scriptable upstream. */
export async function startGateway (t: Scope): Promise<Setup> {
  const upstream = await startUpstream(t)
  const app = Fastify({ forceCloseConnections: true })
  const protocols = ['chat_completions', 'responses', 'images', 'embeddings', 'messages', 'generate_content'] as const
  await app.register(llmGateway, {
    upstreams: { main: { url: upstream.url, credential: 'upstream-credential' } },
    groups: { all: { protocols, upstream: 'main' }, none: { protocols, upstream: 'main', thirdParty: false } },
    forward: { drain: { maxMs: 0 } },
    keys: [{ id: 'good', group: 'all', secret: key }, { id: 'refused', group: 'none', secret: refusedKey }],
  })
  const origin = await app.listen({ port: 0, host: '127.0.0.1' })
  t.teardown(async () => await app.close())
  return { origin, upstream }
}
