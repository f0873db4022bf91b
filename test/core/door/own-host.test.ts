import Fastify from 'fastify'
import t from 'tap'
import { isOwnHost } from '../../../plugins/core/door/own-host.js'
import llmGateway from '../../../plugins/index.js'

t.test('what a page of anybody\'s can be opened by is told from what leads here alone', async (t) => {
  const names = ['gateway.example']
  const cases: ReadonlyArray<readonly [headers: Record<string, string>, own: boolean]> = [
    [{}, true],
    [{ host: '' }, true],
    [{ host: '127.0.0.1' }, true],
    [{ host: '[2001:db8::1]:8080' }, true],
    [{ host: '[::ffff:127.0.0.1]:8080' }, true],
    [{ host: 'localhost:8080' }, true],
    [{ host: 'a.localhost' }, true],
    [{ host: 'Gateway.EXAMPLE:' }, true],
    [{ host: 'evil.example', ':authority': 'gateway.example' }, true],
    [{ host: 'gateway.example', ':authority': 'evil.example' }, false],
    [{ host: 'a.gateway.example' }, false],
    [{ host: 'evil.' }, false],
    [{ host: '127.0.0.1.evil.example' }, false],
    [{ host: 'localhost.evil.example:80' }, false],
    [{ host: 'evil.example', 'x-forwarded-host': 'gateway.example' }, false],
  ]
  for (const [headers, own] of cases) t.equal(isOwnHost(headers, names), own, JSON.stringify(headers))
})

t.test('the document that @fastify/swagger makes of a host\'s routes has neither the metrics nor the console', async (t) => {
  for (const hosts of [{}, { hosts: ['gateway.example'] }]) {
    const app = Fastify()
    t.teardown(() => app.close())
    const shown: string[] = []
    app.addHook('onRoute', ({ url, schema }) => {
      if (Reflect.get(Object(schema), 'hide') !== true) shown.push(url)
    })
    await app.register(llmGateway, {
      routes: false, groups: {}, lookup: () => null, metrics: { path: '/metrics', ...hosts }, console: { path: '/console', ...hosts },
    })
    app.get('/own', async () => 'own')
    await app.ready()
    t.ok(app.hasRoute({ method: 'GET', url: '/metrics' }) && app.hasRoute({ method: 'GET', url: '/console/data' }))
    t.same(new Set(shown), new Set(['/own']))
  }
})
