import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import { consolePage, hostsOf, type ConsoleOptions } from '../../plugins/console/index.js'
import { Readings } from '../../plugins/console/readings.js'
import { boundsOf, tables, tokenRows } from '../../plugins/console/tables.js'
import { metrics } from '../../plugins/metrics/index.js'
import { freePort } from '../helpers/free-port.js'
import { newMeters } from '../metrics/meters.js'
import { groupOf, noTokens, settledRequest } from '../metrics/requests.js'

async function start (t: Test, options: ConsoleOptions): Promise<FastifyInstance> {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(metrics)
  await app.register(consolePage, options)
  return app
}

function readingsOf (fill: (record: ReturnType<typeof newMeters>['recorder']) => void): Readings {
  const meters = newMeters()
  fill(meters.recorder)
  return new Readings(() => meters.store.families)
}

t.test('tokens by group and model, most first, with all their types', async (t) => {
  const readings = readingsOf((recorder) => {
    const few = { ...noTokens, input: 1, output: 2 }
    const many = { ...noTokens, input: 10, cache_read: 5, output: 20 }
    recorder.settled(settledRequest({ usage: { tokens: few }, auth: { group: groupOf('a') } }))
    recorder.settled(settledRequest({ usage: { tokens: many }, auth: { group: groupOf('b') } }))
    recorder.settled(settledRequest({ usage: { tokens: many }, auth: { group: groupOf('b') }, endpoint: 'responses' }))
  })
  t.strictSame(tokenRows(readings), [
    { group: 'b', model: 'gpt-5', total: 70, types: { input: 20, cache_read: 10, output: 40 } },
    { group: 'a', model: 'gpt-5', total: 3, types: { input: 1, output: 2 } },
  ])
})

t.test('the tables stay short', async (t) => {
  const readings = readingsOf((recorder) => {
    for (let n = 0; n < 150; n += 1) {
      recorder.settled(settledRequest({ usage: { tokens: { ...noTokens, input: n + 1 } }, auth: { group: groupOf(`g${n}`) } }))
    }
  })
  const { tokens, allTokens } = Object(tables(readings))
  t.equal(tokens.length, 100)
  t.equal(tokens[0].total, 150)
  t.strictSame(allTokens, { rows: 150, total: 11_325 }, 'and tell what they leave out')
})

t.test('what never happened has no row, though its counter is there', async (t) => {
  const app = await start(t, { path: '/console' })
  const { recorder } = gatewayOf(app)
  recorder.expect('limit_rejections_total', [['quiet', 'tokens'], ['busy', 'budget'], ['busy', 'tokens']])
  recorder.limitRejected('busy', 'budget')
  recorder.limitRejected('quiet', 'tokens')
  recorder.limitRejected('quiet', 'tokens')
  const { tables } = (await app.inject('/console/data')).json()
  const { limited, invalid, repaired, refused } = tables
  t.strictSame([limited, invalid, repaired, refused], [[['quiet', 'tokens', 2], ['busy', 'budget', 1]], [], [], []])
})

t.test('what has no place in a chart', async (t) => {
  const readings = readingsOf((recorder) => {
    recorder.authFailed('messages', 'invalid_api_key')
    recorder.authFailed('responses', 'invalid_api_key')
    recorder.limitRejected('chat', 'balance')
    recorder.gauge('balance_remaining_ratio', () => [{ labels: { group: 'chat' }, value: 0.5 }])
    recorder.settled(settledRequest())
  })
  t.match(tables(readings), {
    refused: [['invalid_api_key', 2]],
    limited: [['chat', 'balance', 1]],
    balances: [['chat', 0.5]],
    outcomes: [['chat_completions', 'ok', 1]],
    version: /^\d+\.\d+\.\d+/,
    series: Number,
  })
})

t.test('bounds are told as soon as there is something to bound', async (t) => {
  t.strictSame(boundsOf(readingsOf(() => {}), 'overhead_seconds'), [])
  const readings = readingsOf((recorder) => {
    recorder.settled(settledRequest())
    recorder.settled(settledRequest({ endpoint: 'responses' }))
  })
  t.equal(boundsOf(readings, 'overhead_seconds').at(-1), 1)
  t.equal(readings.buckets('overhead_seconds').reduce((sum, count) => sum + count), 2)
  t.strictSame(readings.values('no_such_metric'), [])
})

t.test('the page allows itself its own scripts and data, and nothing else', async (t) => {
  const app = await start(t, { path: '/console' })
  const reply = await app.inject('/console')
  t.equal(reply.statusCode, 200)
  t.match(reply.headers, { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
  const policy = String(reply.headers['content-security-policy'])
  t.match(policy, /^default-src 'none'; connect-src 'self'; script-src 'sha256-/)
  const inline = [...reply.body.matchAll(/<(?:script|style)(?: type="module")?>(.*?)<\/(?:script|style)>/gs)]
  t.equal(inline.length, 4)
  for (const [, text = ''] of inline) t.match(policy, createHash('sha256').update(text).digest('base64'))
  t.notMatch(reply.body, /(?:src|href)=/, 'no reference to anything')
})

t.test('the data tell what is new since a point', async (t) => {
  const app = await start(t, { path: '/console/' })
  gatewayOf(app).recorder.settled(settledRequest({ usage: { tokens: { ...noTokens, input: 3 } } }))
  const data = async (after: string) => (await app.inject(`/console/data${after}`)).json()
  let all = await data('')
  while (all.points.length < 2) {
    await setTimeout(100)
    all = await data('')
  }
  const [first, second] = all.points
  t.match(second, { outcomes: { ok: 1 }, tokens: { input: 3 }, active: -1 })
  const { points } = await data(`?after=${first.at}`)
  t.equal(points[0].at, second.at)
  t.equal((await data(`?after=${first.at}&of=${all.startedAt}`)).points[0].at, second.at)
  t.equal((await data(`?after=${first.at}&of=1`)).points[0].at, first.at, 'all, to who has those of another worker')
  const bounds = { duration: [0.01], firstChunk: { length: 0 }, overhead: [0.00005] }
  t.match(all, { startedAt: Number, bounds, tables: { tokens: [{ total: 3 }] } })
})

t.test('with listen, the page is served on a port of its own, and not by the app', async (t) => {
  const port = await freePort()
  const app = await start(t, { listen: { port } })
  await app.ready()
  const page = await fetch(`http://127.0.0.1:${port}/`)
  t.match(await page.text(), '<title>LLM gateway</title>')
  const { tables } = Object(await (await fetch(`http://127.0.0.1:${port}/data`)).json())
  t.strictSame(tables.tokens, [])
  t.equal((await app.inject('/')).statusCode, 404, 'and not on the app\'s')
  await app.close()
  await t.rejects(fetch(`http://127.0.0.1:${port}/`), 'closed with the app')
})

async function statusFor (port: number, host: string, path: string, method = 'GET'): Promise<number | undefined> {
  const asked = request({ port, path, method, headers: { host } }).end()
  const [reply] = await once(asked, 'response')
  reply.resume()
  return reply.statusCode
}

t.test('a name that leads to the console, and is not its own, reads nothing', async (t) => {
  const port = await freePort()
  const app = await start(t, { listen: { port, host: '127.0.0.1' }, hosts: ['Console.example'] })
  await app.ready()
  for (const path of ['/', '/data', '/upstreams']) {
    for (const host of ['evil.example', `evil.example:${port}`, '127.0.0.1.evil.example', 'localhost.evil.example']) {
      t.equal(await statusFor(port, host, path), 403, `${host}${path}`)
    }
    for (const host of [`localhost:${port}`, '127.0.0.1', `[::1]:${port}`, 'build-box', 'a.localhost', 'console.EXAMPLE:80']) {
      t.equal(await statusFor(port, host, path), 200, `${host}${path}`)
    }
  }
  t.equal(await statusFor(port, 'evil.example', '/', 'HEAD'), 403)
})

t.test('a path of an app answers to all names, or to those that are listed', async (t) => {
  const headers = { host: 'gateway.example' }
  const open = await start(t, { path: '/console' })
  t.equal((await open.inject({ url: '/console/data', headers })).statusCode, 200)
  const listed = await start(t, { path: '/console', hosts: ['gateway.example'] })
  t.equal((await listed.inject({ url: '/console/data', headers })).statusCode, 200)
  const refused = await listed.inject({ url: '/console', headers: { host: 'evil.example', 'x-forwarded-host': 'gateway.example' } })
  t.equal(refused.statusCode, 403)
  t.match(refused.body, /console\.hosts/)
  t.equal(refused.headers['content-type'], 'text/plain; charset=utf-8')
})

t.test('the name that it listens on is its own', async (t) => {
  t.strictSame(hostsOf({ listen: { port: 0, host: 'console.example' } }), ['console.example'])
  t.strictSame(hostsOf({ listen: { port: 0 } }), [])
  t.strictSame(hostsOf({ listen: { port: 0, host: '::1' } }), [], 'an address is no name')
})

t.test('it needs a place, and a wrong option names itself', async (t) => {
  const wrong: Array<[Record<string, unknown>, RegExp]> = [
    [{}, /console needs a path or listen\.port/],
    [{ listen: {} }, /console needs a path or listen\.port/],
    [{ path: 'console' }, /console\.path/],
    [{ path: '/' }, /console\.path/],
    [{ path: '/a?b' }, /console\.path/],
    [{ path: '/a%20b' }, /console\.path/],
    [{ listen: { port: -1 } }, /console\.listen\.port/],
    [{ colour: 'red' }, /console\.colour/],
    [{ path: '/console', hosts: 'gateway.example' }, /console\.hosts must be a list/],
    [{ path: '/console', hosts: ['a.example', 'b.example:80'] }, /console\.hosts\[1\] must be a name alone/],
  ]
  for (const [options, message] of wrong) {
    const app = Fastify()
    t.teardown(() => app.close())
    await t.rejects(async () => await app.register(consolePage, options), { code: 'LLM_GATEWAY_OPTION', message })
  }
})

t.test('what another process counts does not go on where the old one stood', async (t) => {
  const { goesOn, state } = await import(new URL('../../plugins/console/client/numbers.js', import.meta.url).href)
  const pointOf = (ok: number) => ({ outcomes: { ok, timeout: 1 } })
  t.ok(goesOn({ startedAt: 0, points: [pointOf(3)] }), 'the first')
  Object.assign(state, { startedAt: 5, points: [pointOf(2), pointOf(3)] })
  t.ok(goesOn({ startedAt: 5, points: [pointOf(3), pointOf(4)] }))
  t.ok(goesOn({ startedAt: 5, points: [] }), 'nothing new')
  t.notOk(goesOn({ startedAt: 5, points: [pointOf(1)] }), 'counts that fell')
  t.notOk(goesOn({ startedAt: 6, points: [pointOf(4)] }), 'another process')
})

t.test('without metrics there is nothing to show', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  app.register(consolePage, { path: '/console' })
  await t.rejects(async () => await app.ready(), { code: 'LLM_GATEWAY_OPTION', message: /console needs the metrics plugin/ })
})
