import { context, propagation, trace, type Span } from '@opentelemetry/api'
import type { ReadableSpan } from '@opentelemetry/sdk-trace-node'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { call, listen, read, startGateway, type Gateway } from '../helpers/gateway.js'
import { startUpstream, type Upstream, type UpstreamRequest } from '../helpers/upstream.js'
import { scopeOf, startTracing, type Setup } from './sdk.js'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const callerSpanId = 'b7ad6b7169203331'
const fromCaller = { traceparent: `00-${traceId}-${callerSpanId}-01`, tracestate: 'vendor=1', baggage: 'tenant=secret-tenant' }

const setups: ReadonlyArray<Setup & { readonly name: string }> = [
  { name: 'no SDK', sdk: false, http: false, undici: false },
  { name: 'an SDK alone', sdk: true, http: false, undici: false },
  { name: 'undici', sdk: true, http: false, undici: true },
  { name: 'http', sdk: true, http: true, undici: false },
  { name: 'http and undici', sdk: true, http: true, undici: true },
]

interface Running extends Gateway {
  readonly upstream: Upstream
  readonly url: string
}

async function start (t: Test, prepare: (app: FastifyInstance) => void = () => {}, tracing: { baggage?: boolean } | false = {}): Promise<Running> {
  const upstream = await startUpstream(t)
  const gateway = await startGateway(t, upstream.url, { tracing })
  prepare(gateway.app)
  return { ...gateway, upstream, url: await listen(gateway.app) }
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

function spanOf (spans: readonly ReadableSpan[], scope: string, kind?: number): ReadableSpan | undefined {
  return spans.find((span) => scopeOf(span) === scope && (kind === undefined || span.kind === kind))
}

for (const setup of setups) {
  for (const stream of [false, true]) {
    t.test(`${setup.name}, ${stream ? 'streamed' : 'not streamed'}`, async (t) => {
      const { finished } = startTracing(t, setup)
      const running = await start(t)

      await t.test('a caller with a trace', async (t) => {
        const seen = await chat(running, fromCaller, stream)
        const [traceparent = '', ...more] = wire(seen, 'traceparent')
        t.strictSame(more, [], 'exactly one traceparent')
        t.strictSame(wire(seen, 'tracestate'), ['vendor=1'])
        t.strictSame(wire(seen, 'baggage'), [], 'no baggage')
        t.equal(traceparent.split('-')[1], traceId, 'in the caller\'s trace')
        if (!setup.sdk) {
          t.equal(traceparent, fromCaller.traceparent)
          return
        }
        const ours = spanOf(finished(), 'fastify-llm-gateway')
        const last = setup.undici ? spanOf(finished(), 'undici') : ours
        t.equal(traceparent.split('-')[2], last?.spanContext().spanId, 'from the span nearest to the wire')
        if (setup.undici) t.equal(last?.parentSpanContext?.spanId, ours?.spanContext().spanId, 'which is below ours')
        const server = finished().find((span) => scopeOf(span) === 'http' && span.attributes['url.path'] === '/v1/chat/completions' && span.parentSpanContext?.spanId === callerSpanId)
        t.equal(ours?.parentSpanContext?.spanId, setup.http ? server?.spanContext().spanId : callerSpanId, 'and ours below the server\'s')
      })

      await t.test('a caller without a trace', async (t) => {
        const seen = await chat(running, {}, stream)
        t.equal(wire(seen, 'traceparent').length, setup.sdk ? 1 : 0)
      })
    })
  }
}

t.test('a span that a hook of the host made active is the parent, as with an instrumentation of Fastify', async (t) => {
  const { finished, provider } = startTracing(t, { sdk: true, http: true, undici: true })
  const spans: Span[] = []
  const running = await start(t, (app) => {
    app.addHook('onRequest', (_request, _reply, done) => {
      const span = provider.getTracer('host').startSpan('request')
      spans.push(span)
      context.with(trace.setSpan(context.active(), span), done)
    })
  })
  const seen = await chat(running, fromCaller)
  t.equal(wire(seen, 'traceparent').length, 1)
  t.equal(spanOf(finished(), 'fastify-llm-gateway')?.parentSpanContext?.spanId, spans[0]?.spanContext().spanId)
})

t.test('forwarding alone, without our span', async (t) => {
  for (const undici of [false, true]) {
    await t.test(undici ? 'undici adds its own' : 'the caller\'s travels on', async (t) => {
      startTracing(t, { sdk: true, http: false, undici })
      const seen = await chat(await start(t, () => {}, false), fromCaller)
      const [traceparent, ...more] = wire(seen, 'traceparent')
      t.strictSame(more, [])
      t.equal(traceparent === fromCaller.traceparent, !undici)
    })
  }
})

t.test('an instrumentation without an SDK changes nothing', async (t) => {
  startTracing(t, { sdk: false, http: true, undici: true })
  const seen = await chat(await start(t), fromCaller)
  t.strictSame(wire(seen, 'traceparent'), [fromCaller.traceparent])
})

t.test('an SDK without a propagator leaves the caller\'s headers', async (t) => {
  startTracing(t, { sdk: true, http: false, undici: false })
  propagation.disable()
  const seen = await chat(await start(t), fromCaller)
  t.strictSame(wire(seen, 'traceparent'), [fromCaller.traceparent])
})

t.test('baggage travels where it is wanted', async (t) => {
  startTracing(t, { sdk: true, http: false, undici: false })
  const seen = await chat(await start(t, () => {}, { baggage: true }), fromCaller)
  t.strictSame(wire(seen, 'baggage'), ['tenant=secret-tenant'])
})
