import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { launch, originOf, program, until, type Child } from '../helpers/launch.js'
import { startUpstream } from '../helpers/upstream.js'
import { startReceiver, totalOf, type ReceivedSpan } from '../metrics/otlp-receiver.js'

const examples = new URL('../../examples/', import.meta.url).pathname
const preload = `${examples}observability/otel.js`

/** A gateway with an upstream of its own, and otel.js loaded before it. */
function withOtel (t: Test, listen: string, env: Record<string, string>): Child {
  const config = [
    `listen: { ${listen} }`,
    'state: { engine: lmdb, path: ./state }',
    'upstreams: { demo: { simulate: true } }',
    'groups: { chat: { protocols: [chat_completions] } }',
    'keys: [{ id: dev, group: chat, secret: my-key-0123456789 }]',
  ].join('\n')
  return launch(t, '--import', [preload, program, 'start', '--config', 'gateway.yaml'], env, t.testdir({ 'gateway.yaml': config }))
}

t.test('traces and metrics of an app reach a collector', async (t) => {
  const [upstream, collector] = await Promise.all([startUpstream(t), startReceiver(t)])
  const child = launch(t, '--import', [preload, `${examples}prometheus/app.js`], {
    UPSTREAM_URL: upstream.url,
    UPSTREAM_KEY: 'provider-key',
    GATEWAY_KEY: 'my-key-0123456789',
    PORT: '0',
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_METRIC_EXPORT_INTERVAL: '2000',
    OTEL_BSP_SCHEDULE_DELAY: '50',
  })
  const [, origin = ''] = await until(child.out, /^listening on (.*)$/)
  const traceId = '0af7651916cd43dd8448eb211c80319c'
  const reply = await fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: 'Bearer my-key-0123456789', 'content-type': 'application/json', traceparent: `00-${traceId}-b7ad6b7169203331-01`,
    },
    body: '{"model":"gpt-5","messages":[{"role":"user","content":"hi"}]}',
  })
  t.equal(reply.status, 200, await reply.text())
  const seen = await upstream.requests.next()

  const chain: ReceivedSpan[] = []
  while (chain.length < 3) chain.push(...(await collector.spans.next()).filter((span) => span.traceId === traceId))
  const [server, ours, client] = ['instrumentation-http', 'fastify-llm-gateway', 'instrumentation-undici'].map(
    (scope) => chain.find((span) => span.scope.endsWith(scope))
  )
  t.equal(server?.parentSpanId, 'b7ad6b7169203331', 'the caller, then the server')
  t.match(ours, { name: 'chat gpt-5', parentSpanId: server?.spanId })
  t.equal(client?.parentSpanId, ours?.spanId)
  t.equal(seen.headers.traceparent, `00-${traceId}-${client?.spanId}-01`, 'and the upstream goes on')

  let metrics = await collector.metrics.next()
  while (totalOf(metrics, 'llm_gateway.requests') === 0) metrics = await collector.metrics.next()
  t.equal(totalOf(metrics, 'llm_gateway.tokens'), 170)
  t.equal(totalOf(metrics, 'gen_ai.client.token.usage'), 2, 'input and output')
})

t.test('each process of a gateway has an id of its own, and the name that the environment gives it', async (t) => {
  const collector = await startReceiver(t)
  withOtel(t, 'port: 0, workers: 2', {
    OTEL_SERVICE_NAME: 'my-gateway', OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_METRIC_EXPORT_INTERVAL: '2000',
  })
  const ids = new Set<string>()
  while (ids.size < 2) {
    const { 'service.name': name, 'service.instance.id': id } = await collector.processes.next()
    t.equal(name, 'my-gateway')
    ids.add(String(id))
  }
  t.notOk(ids.has('undefined'))
})

t.test('a collector that takes nothing is told on stderr, and keeps no process that is to end', async (t) => {
  const child = withOtel(t, 'port: 0', { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', OTEL_METRIC_EXPORT_INTERVAL: '2000' })
  await originOf(child)
  while (child.err.length === 0) await pause(10)
  child.process.kill('SIGTERM')
  t.equal(await child.exited, 0)
  t.match(child.err.join('\n'), /ECONNREFUSED|timed out/)
})

t.test('OTEL_SDK_DISABLED turns it off', async (t) => {
  const collector = await startReceiver(t)
  const child = withOtel(t, 'port: 0', { OTEL_SDK_DISABLED: 'True', OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })
  await originOf(child)
  child.process.kill('SIGTERM')
  await child.exited
  t.equal(collector.processes.size, 0, 'also what is sent at the end')
})
