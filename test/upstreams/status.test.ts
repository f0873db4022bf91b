import { setTimeout as wait } from 'node:timers/promises'
import httpProxy from '@fastify/http-proxy'
import Fastify from 'fastify'
import t from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import llmGateway, { proxyOptions } from '../../plugins/index.js'
import { call, everyProtocol, gatewayOptions, listen, secret, startGateway, watchSettled } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { memberRows } from '../../plugins/console/member-rows.js'
import { HealthRegistry } from '../../plugins/upstreams/health.js'
import { statusOf } from '../../plugins/upstreams/status.js'
import { overloaded } from './pool-gateway.js'
import { upstreamOf } from './request.js'

t.test('how an upstream does, and what it gets no request for', async (t) => {
  const registry = new HealthRegistry()
  const upstream = upstreamOf({ url: 'https://h/v1?', account: 'a' }, 'one')
  const health = registry.of(upstream)
  const look = (now: number) => statusOf([upstream], [], registry, now).upstreams[0]
  t.strictSame(look(0), {
    name: 'one', address: 'https://h', account: 'a', state: 'up', reason: null, returnsInMs: 0, active: 0, models: [], workers: 1,
  })
  t.strictSame(memberRows(statusOf([upstream], [], registry, 0)), [['one', 'up', 0, 0]])
  for (let i = 0; i < 5; i += 1) health.breaker.failed(0, false)
  t.match(look(400), { state: 'out', reason: 'failures', returnsInMs: 600 })
  t.match(look(1_000), { state: 'due', returnsInMs: 0 })
  health.breaker.enter(0)
  t.match(look(1_500), { state: 'due' }, 'a request that runs will tell')
  health.credential.failed(1_500, false)
  t.match(look(1_500), { state: 'out', reason: 'credential', returnsInMs: 30_000 })
  health.account.cool('m', 2_000)
  health.modelBreaker('n').failed(1_500, false)
  t.match(look(1_500)?.models, [
    { model: 'm', reason: 'limit', returnsInMs: 500 }, { model: 'n', reason: 'credential', returnsInMs: 30_000 },
  ])
  t.strictSame(look(40_000)?.models, [])
  t.strictSame(memberRows(statusOf([upstream], [], registry, 1_500)), [
    ['one', 'out: credential', 0, 30], ['one', 'm: limit', 0, 1], ['one', 'n: credential', 0, 30],
  ])
})

for (const mounted of [false, true]) {
  t.test(`a request whose caller left while a hook waited is nobody's any more: ${mounted ? 'a mount' : 'our own routes'}`, async (t) => {
    const upstream = await startUpstream(t)
    const logged: string[] = []
    const app = Fastify({ logger: { level: 'error', stream: { write: (line: string) => { logged.push(line) } } } })
    t.teardown(() => app.close())
    await app.register(llmGateway, {
      ...gatewayOptions(upstream.url), groups: { all: { protocols: everyProtocol, upstream: 'main' } }, routes: !mounted,
    })
    let goOn = (): void => {}
    const isWaiting = new Promise<void>((resolve) => {
      app.addHook('preHandler', async () => {
        resolve()
        await new Promise<void>((resolve) => { goOn = resolve })
      })
    })
    if (mounted) await app.register(httpProxy, { ...proxyOptions(), upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1' })
    const settled = watchSettled(app)
    const body = '{"model":"m","messages":[{"role":"user","content":"x"}]}'
    const { request } = call(`${await listen(app)}/v1/chat/completions`, { body })
    await isWaiting
    request.destroy()
    t.match(await settled.next(), { abortedBy: 'client' })
    goOn()
    await wait(50)
    t.match(gatewayOf(app).upstreamsStatus().upstreams, [{ name: 'main', active: 0 }])
    t.equal(upstream.seen.length, 0)
    t.strictSame(logged, [])
  })
}

t.test('what runs at an upstream is counted until its end, whatever that is', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url)
  const active = (): number[] => gatewayOf(app).upstreamsStatus().upstreams.map((each) => each.active)
  const meanwhile: number[][] = []
  for (const script of [{}, overloaded, { cutAt: 'headers' as const }]) {
    upstream.respond = () => {
      meanwhile.push(active())
      return script
    }
    const payload = { model: 'm', messages: [{ role: 'user', content: 'x' }] }
    await app.inject({ method: 'POST', url: '/v1/chat/completions', headers: { authorization: `Bearer ${secret}` }, payload })
    await settled.next()
    t.strictSame(active(), [0])
  }
  t.strictSame(meanwhile, [[1], [1], [1]])
})
