import type { FastifyReplyFromHooks } from '@fastify/reply-from'
import type { FastifyInstance, FastifyReply, RouteHandlerMethod } from 'fastify'
import type { Gateway } from '../core/gateway.js'
import { modelCallOf, type ModelCall } from '../core/model-call.js'
import type { Upstream } from '../core/types.js'
import type { UpstreamDispatcher } from './dispatcher.js'
import type { RewriteHeaders } from './owner.js'
import { relay } from './relay.js'
import { send, type Passage } from './send.js'

/** What is left of a mount on the way past reply-from. */
interface Shortcut {
  readonly dispatcher: UpstreamDispatcher
  readonly rewriteHeaders: RewriteHeaders | null
}

/** URLs that a route remembers: more than there are endpoints, fewer than callers can make up. */
const rememberedUrls = 64

const taken = new WeakMap<ModelCall, Shortcut>()

/**
 * Where the group has an upstream of its own and the host changes nothing of the request, `reply.from` has nothing to add
 * but its cost. What the mount itself makes of a reply's headers is kept.
 */
export function forwardModel (dispatcher: UpstreamDispatcher, passage: Passage, dest: string, options: FastifyReplyFromHooks): FastifyReply | undefined {
  const { llm, upstream } = passage
  const isRead = llm.body !== null || llm.endpoint.body === 'none'
  if (upstream === null || !isRead || !rewritesOnlyReplies(options)) return send(passage, dest, options)
  const shortcut = { dispatcher, rewriteHeaders: options.rewriteHeaders ?? null }
  taken.set(llm, shortcut)
  // Returns nothing: for a reply that is returned, the framework listens to the whole exchange once more.
  take(shortcut, passage, upstream)
  return undefined
}

function rewritesOnlyReplies (options: FastifyReplyFromHooks): boolean {
  return Object.keys(options).every((name) => name === 'rewriteHeaders')
}

function take ({ dispatcher, rewriteHeaders }: Shortcut, { gateway, llm, request, reply }: Passage, upstream: Upstream): void {
  relay(dispatcher, upstream, { gateway, llm, request, reply, upstream, streamOnly: false, rewriteHeaders })
}

/**
 * `@fastify/http-proxy` decodes each URL and parses three, to find where the request would go. Where it goes to its group's
 * upstream instead, that only tells whether the mount lets the URL pass, the same each time, and costs a tenth of the
 * request. So each route remembers the first URLs that came through it (none with a query, which may hold anything) and
 * goes past the mount's handler with them. Not where somebody put a function of their own around that handler.
 */
export function rememberShortcuts (app: FastifyInstance, gateway: Gateway): void {
  app.addHook('onRoute', function (route) {
    const isPlain = this.pluginName === '@fastify/http-proxy' && route.handler.name === 'handler'
    if (isPlain && route.config?.llm === 'proxy') route.handler = remembering(gateway, route.handler)
  })
}

function remembering (gateway: Gateway, handler: RouteHandlerMethod): RouteHandlerMethod {
  const shortcuts = new Map<string, Shortcut>()
  return function (request, reply) {
    const llm = modelCallOf(request)
    const { url = '' } = request.raw
    // Without a body it may be an upgrade, which the mount serves.
    if (llm === null || llm.body === null) return handler.call(this, request, reply)
    const upstream = gateway.upstreamFor(llm)
    const known = shortcuts.get(url)
    if (known !== undefined && upstream !== null) {
      take(known, { gateway, llm, request, reply, upstream }, upstream)
      return undefined
    }
    const result = handler.call(this, request, reply)
    const found = taken.get(llm)
    if (found !== undefined && shortcuts.size < rememberedUrls && !url.includes('?')) shortcuts.set(url, found)
    return result
  }
}
