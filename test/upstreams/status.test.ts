import t from 'tap'
import { memberRows } from '../../plugins/console/member-rows.js'
import { HealthRegistry } from '../../plugins/upstreams/health.js'
import { statusOf } from '../../plugins/upstreams/status.js'
import { upstreamOf } from './request.js'

t.test('how an upstream does, and what it gets no request for', async (t) => {
  const registry = new HealthRegistry()
  const upstream = upstreamOf({ url: 'https://h/v1?', account: 'a' }, 'one')
  const health = registry.of(upstream)
  const look = (now: number) => statusOf([upstream], [], registry, now).upstreams[0]
  t.match(look(0), { name: 'one', address: 'https://h', account: 'a', state: 'up', reason: null, returnsInMs: 0, active: 0, models: [] })
  t.strictSame(memberRows(statusOf([upstream], [], registry, 0)), [['one', 'up', 0, 0]])
  for (let i = 0; i < 5; i += 1) health.breaker.failed(0, false)
  t.match(look(400), { state: 'out', reason: 'failures', returnsInMs: 600 })
  t.match(look(1_000), { state: 'due', returnsInMs: 0 })
  health.breaker.enter()
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
