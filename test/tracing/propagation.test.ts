import { propagation } from '@opentelemetry/api'
import type { ReadableSpan } from '@opentelemetry/sdk-trace-node'
import httpProxy from '@fastify/http-proxy'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import llmGateway, { proxyOptions, type LlmGatewayOptions } from '../../plugins/index.js'
import { clientAddsTrace } from '../../plugins/core/telemetry/outgoing-trace.js'
import { call, gatewayOptions, listen, read, secret, watchSettled, type Gateway } from '../helpers/gateway.js'
import { startUpstream, type Upstream, type UpstreamRequest } from '../helpers/upstream.js'
import { scopeOf, startTracing, type Setup } from './sdk.js'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const callerSpanId = 'b7ad6b7169203331'
const fromCaller = { traceparent: `00-${traceId}-${callerSpanId}-01`, tracestate: 'vendor=1', baggage: 'tenant=secret-tenant' }

const either = [false, true]
const withSdk: readonly Setup[] = either.flatMap((http) => either.flatMap((undici) => either.map((fastify) => ({
  sdk: true, http, undici, fastify,
}))))
const setups: readonly Setup[] = [
  { sdk: false, http: false, undici: false }, { sdk: false, http: true, undici: true, fastify: true }, ...withSdk,
]

function nameOf ({ sdk, http, undici, fastify }: Setup): string {
  const parts = Object.entries({ http, undici, fastify }).flatMap(([name, on]) => on === true ? [name] : [])
  return `${sdk ? 'an SDK' : 'no SDK'}${parts.length > 0 ? ` and instrumented ${parts.join(', ')}` : ''}`
}

/** Our own routes; a mount of the host that spreads `proxyOptions()`; one whose options nobody touched. */
type Place = 'routes' | 'mount' | 'bare mount'

interface Running extends Gateway {
  readonly upstream: Upstream
  readonly url: string
}

async function start (t: Test, place: Place = 'routes', tracing: LlmGatewayOptions['tracing'] = {}): Promise<Running> {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  const routes = place === 'routes'
  await app.register(llmGateway, gatewayOptions(upstream.url, { tracing, routes, ...routes ? {} : { upstreams: {} } }))
  if (place !== 'routes') {
    await app.register(httpProxy, {
      upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1', ...place === 'mount' ? proxyOptions() : {},
    })
  }
  return { app, settled: watchSettled(app), upstream, url: await listen(app) }
}

async function chat ({ url, upstream, settled }: Running, headers: Record<string, string>, stream = false): Promise<UpstreamRequest> {
  const body = JSON.stringify({ model: 'gpt-5', stream, messages: [{ role: 'user', content: 'hi' }] })
  const { reply } = call(`${url}/v1/chat/completions`, { headers, body })
  await read(await reply)
  await settled.next()
  return await upstream.requests.next()
}

/** All values of a header as they were on the wire. */
function wire (request: UpstreamRequest, name: string): string[] {
  return request.rawHeaders.filter((_, index, all) => index % 2 === 1 && all[index - 1]?.toLowerCase() === name)
}

function idOf (span: ReadableSpan | undefined): string | undefined {
  return span?.spanContext().spanId
}

/** The spans of one call, from the server down. */
interface Chain {
  readonly server: ReadableSpan | undefined
  readonly request: ReadableSpan | undefined
  readonly ours: ReadableSpan | undefined
  readonly client: ReadableSpan | undefined
}

function chainOf (spans: readonly ReadableSpan[]): Chain {
  const find = (
    scope: string, wanted: (span: ReadableSpan) => boolean = () => true
  ) => spans.find((span) => scopeOf(span) === scope && wanted(span))
  return {
    server: find('http', ({ parentSpanContext }) => parentSpanContext?.spanId === callerSpanId),
    request: find('@fastify/otel', ({ name }) => name === 'request'),
    ours: find('fastify-llm-gateway'),
    client: find('undici'),
  }
}

for (const setup of setups) {
  for (const place of ['routes', 'mount', 'bare mount'] as const) {
    t.test(`${nameOf(setup)}: ${place}`, async (t) => {
      const { finished } = startTracing(t, setup)
      const running = await start(t, place)
      t.equal(clientAddsTrace(), setup.sdk && setup.undici, 'what the HTTP client adds is known')

      const seen = await chat(running, fromCaller)
      const [traceparent = '', ...more] = wire(seen, 'traceparent')
      t.strictSame(more, [], 'exactly one traceparent')
      t.strictSame(wire(seen, 'tracestate'), ['vendor=1'], 'and one tracestate')
      t.equal(traceparent.split('-')[1], traceId, 'in the caller\'s trace')
      if (!setup.sdk) {
        t.equal(traceparent, fromCaller.traceparent)
        t.strictSame(finished(), [])
        return
      }
      t.strictSame(wire(seen, 'baggage'), [], 'no baggage')
      const { server, request, ours, client } = chainOf(finished())
      t.equal(server !== undefined, setup.http)
      t.equal(request !== undefined, setup.fastify)
      t.equal(client !== undefined, setup.undici)
      t.equal(ours?.parentSpanContext?.spanId, idOf(request) ?? idOf(server) ?? callerSpanId, 'ours is below the server\'s')
      t.equal(traceparent.split('-')[2], idOf(client ?? ours), 'the upstream is told of the span nearest to the wire')
      if (client !== undefined) t.equal(client.parentSpanContext?.spanId, idOf(ours), 'and that span is below ours')

      for (const stream of either) {
        t.equal(wire(await chat(running, {}, stream), 'traceparent').length, 1, 'one for a caller without a trace')
      }
    })
  }
}

t.test('forwarding alone, without our span', async (t) => {
  for (const undici of either) {
    for (const place of ['routes', 'mount'] as const) {
      await t.test(`${place}: ${undici ? 'undici adds its own' : 'the caller\'s travels on'}`, async (t) => {
        startTracing(t, { sdk: true, http: false, undici })
        const seen = await chat(await start(t, place, false), fromCaller)
        const [traceparent, ...more] = wire(seen, 'traceparent')
        t.strictSame(more, [])
        t.equal(traceparent === fromCaller.traceparent, !undici)
      })
    }
  }
})

t.test('a host that answers by itself has the caller\'s headers, below our span', async (t) => {
  const { finished } = startTracing(t, { sdk: true, http: false, undici: false })
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, gatewayOptions('', { upstreams: {}, routes: false }))
  app.post('/v1/chat/completions', async ({ headers }) => headers)
  const reply = await app.inject({
    method: 'POST',
    url: '/v1/chat/completions',
    headers: { authorization: `Bearer ${secret}`, ...fromCaller },
    payload: { model: 'm', messages: [{ role: 'user', content: 'hi' }] },
  })
  t.match(reply.json(), fromCaller)
  t.equal(chainOf(finished()).ours?.parentSpanContext?.spanId, callerSpanId)
})

t.test('an SDK without a propagator leaves the caller\'s headers', async (t) => {
  startTracing(t, { sdk: true, http: false, undici: false })
  propagation.disable()
  for (const place of ['routes', 'mount', 'bare mount'] as const) {
    const seen = await chat(await start(t, place), fromCaller)
    t.strictSame(wire(seen, 'traceparent'), [fromCaller.traceparent])
  }
})

t.test('baggage travels where it is wanted', async (t) => {
  startTracing(t, { sdk: true, http: false, undici: false })
  for (const place of ['routes', 'mount', 'bare mount'] as const) {
    const seen = await chat(await start(t, place, { baggage: true }), fromCaller)
    t.strictSame(wire(seen, 'baggage'), ['tenant=secret-tenant'], place)
  }
})
