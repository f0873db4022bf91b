import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import Fastify from 'fastify'
import t from 'tap'
import llmGateway, { type LlmGatewayOptions } from '../../plugins/index.js'
import { maxExpected } from '../../plugins/metrics/from-zero.js'
import { plainText, renderText } from '../../plugins/metrics/exposition.js'
import { keys, startGateway } from '../conformance/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { newMeters, samplesOf } from './meters.js'
import { settledRequest } from './requests.js'

const alerts = readFileSync('examples/observability/alerts.yml', 'utf8')

async function samples (meters: ReturnType<typeof newMeters>): Promise<Map<string, number>> {
  return samplesOf(await renderText(meters.store.families, plainText))
}

t.test('a counter whose first event an alert is to see is there at 0', async (t) => {
  const before = await samples(newMeters())
  const expected = [
    'usage_missing_total{protocol="messages",reason="too_large"}',
    'usage_inconsistent_total{protocol="embeddings"}',
    'stream_aborts_total{protocol="responses",side="upstream"}',
    'auth_failures_total{protocol="sockets",reason="invalid_api_key"}',
    'auth_failures_total{protocol="chat_completions",reason="too_many_auth_failures"}',
    'auth_failures_total{protocol="models",reason="conflict"}',
    'validation_failures_total{protocol="messages",keyword="required"}',
    'validation_failures_total{protocol="images",keyword="media_type"}',
    'validation_failures_total{protocol="images",keyword="unchecked"}',
    'path_normalizations_total{protocol="generate_content",kind="duplicate_v1beta"}',
    'path_normalizations_total{protocol="models",kind="slashes"}',
    'path_refusals_total{family="gemini",reason="unknown_action"}',
    'key_lookups_total{result="stale"}',
    'ledger_write_failures_total',
    'settlements_lost_total',
    'shed_total{reason="queue_timeout"}',
    'log_lines_dropped_total',
    'label_overflow_total{label="model"}',
    'label_overflow_total{label="group"}',
    'label_overflow_total{label="upstream"}',
  ]
  for (const name of expected) t.equal(before.get(`llm_gateway_${name}`), 0, name)
  t.notOk([...before.keys()].some((name) => name.includes('reason="not_authorized"')), 'no host of its own refuses in auth')
  t.notOk([...before.keys()].some((name) => /auth_failures_total.*reason="(?:body_too_large|upstream_timeout)"/.test(name)))
  for (const [, name = ''] of alerts.matchAll(
    /(llm_gateway_(?:auth_failures|shed|ledger_write_failures|key_lookups|stream_aborts|usage_missing)_total)/g
  )) {
    t.ok([...before.keys()].some((sample) => sample.startsWith(name)), name)
  }
})

t.test('they are counted on, and take no place of others', async (t) => {
  const meters = newMeters({ maxCells: 1 })
  meters.recorder.shed('heap')
  meters.recorder.shed('heap')
  meters.recorder.authFailed('messages', 'one that nobody knew')
  meters.recorder.settled(settledRequest({ stream: true, usage: { missing: 'no_usage' } }))
  const after = await samples(meters)
  t.equal(after.get('llm_gateway_shed_total{reason="heap"}'), 2)
  t.equal(after.get('llm_gateway_shed_total{reason="loop_delay"}'), 0)
  t.equal(after.get('llm_gateway_auth_failures_total{protocol="messages",reason="one that nobody knew"}'), 1)
  t.equal(after.get('llm_gateway_usage_missing_total{protocol="chat_completions",reason="no_usage"}'), 1)
  t.notOk([...after.keys()].some((name) => /^llm_gateway_(shed|auth).*"other"/.test(name)))
})

t.test('what callers meet is one of them: nothing they do makes another series', async (t) => {
  const { origin } = await startGateway(t)
  const scrape = async (): Promise<string[]> => {
    const text = await (await fetch(`${origin}/metrics`)).text()
    return [...samplesOf(text).keys()].filter(
      (name) => /^llm_gateway_(auth_failures|usage_missing|key_lookups|stream_aborts)_total/.test(name)
    )
  }
  const before = await scrape()
  const ask = async (
    path: string, headers: Record<string, string>, body: string | null = '{"model":"m","max_tokens":1,"messages":[]}'
  ): Promise<number> => {
    return (await fetch(origin + path, {
      method: body === null ? 'GET' : 'POST', body, headers: { 'content-type': 'application/json', ...headers },
    })).status
  }
  const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
  t.equal(await ask('/v1/messages', { 'anthropic-version': '2023-06-01' }), 401)
  t.equal(await ask('/v1/chat/completions', bearer('sk-wrong')), 401)
  t.equal(await ask('/v1/chat/completions', { authorization: 'Basic abc' }), 401)
  t.equal(await ask('/v1/chat/completions', bearer(keys.none)), 403)
  t.equal(await ask('/v1/models', bearer('sk-wrong'), null), 401)
  t.equal(await ask('/v1/messages', { 'x-api-key': 'a-key', ...bearer('another'), 'anthropic-version': '2023-06-01' }), 401)
  await sleep(20)
  t.same(await scrape(), before)
})

t.test('so are the repairs of paths and the faults of bodies: each is there at 0 before it is met', async (t) => {
  const { origin } = await startGateway(t, { validation: { maxValues: 5_000 } })
  const scrape = async (): Promise<Map<string, number>> => samplesOf(await (await fetch(`${origin}/metrics`)).text())
  const before = await scrape()
  const json = 'application/json'
  const chat = (rest: string): string => `{"model":"m","messages":[{"role":"user","content":"hi"}]${rest}}`
  const deep = 2_000
  const rows = [
    ['required', 'openai', '/v1/chat/completions', '{"model":"m"}'],
    ['type', 'openai', '/v1/chat/completions', '{"model":"m","messages":1}'],
    ['minItems', 'openai', '/v1/chat/completions', '{"model":"m","messages":[]}'],
    ['minLength', 'openai', '/v1/chat/completions', '{"model":"","messages":[{"role":"user","content":"hi"}]}'],
    ['minimum', 'anthropic', '/v1/messages', chat(',"max_tokens":-1')],
    ['pattern', 'openai', '/v1/images/generations', '{"model":"m","prompt":"x","size":"huge"}'],
    ['empty', 'openai', '/v1/chat/completions', ''],
    ['json', 'openai', '/v1/chat/completions', '{'],
    ['bom', 'openai', '/v1/chat/completions', `\ufeff${chat('')}`],
    ['utf8', 'openai', '/v1/chat/completions', Buffer.from(chat(',"user":"\u00ff"'), 'latin1')],
    ['depth', 'openai', '/v1/chat/completions', chat(`,"x":${'['.repeat(deep)}${']'.repeat(deep)}`)],
    ['values', 'openai', '/v1/chat/completions', chat(`,"x":[${Array(6_000).fill(1)}]`)],
    ['duplicate_key', 'openai', '/v1/chat/completions', chat(',"model":"n"')],
    ['models', 'openai', '/v1/chat/completions', `{"model":"${'m'.repeat(5_000)}","messages":[{"role":"user","content":"hi"}]}`],
    ['media_type', 'openai', '/v1/chat/completions', chat(''), 'text/plain'],
    ['form', 'openai', '/v1/images/edits', 'no form', 'multipart/form-data; boundary=b'],
    ['encoding', 'openai', '/v1/chat/completions', chat(''), json, { 'content-encoding': 'snappy' }],
    ['missing_prefix', 'openai', '/chat/completions', chat('')],
    ['slashes', 'openai', '/v1//chat/completions', chat('')],
    ['other_version', 'openai', '/v1beta/chat/completions', chat('')],
    ['mixed_prefixes', 'openai', '/v1/v1beta/chat/completions', chat('')],
    ['duplicate_v1', 'openai', '/v1/v1/chat/completions', chat('')],
  ] as const
  for (const [word, group, path, body, type = json, headers = {}] of rows) {
    await (await fetch(origin + path, {
      method: 'POST',
      body,
      headers: { authorization: `Bearer ${keys[group]}`, 'content-type': type, 'anthropic-version': '2023-06-01', ...headers },
    })).text()
    const found = [...await scrape()].filter(([name, value]) => name.endsWith(`="${word}"}`) && value > 0)
    t.equal(found.length, 1, word)
    for (const [name] of found) t.equal(before.get(name), 0, name)
  }
})

t.test('a request that its path leads nowhere is counted, once, and makes no series of its own', async (t) => {
  const { origin } = await startGateway(t)
  const scrape = async (): Promise<Map<string, number>> => samplesOf(await (await fetch(`${origin}/metrics`)).text())
  const before = await scrape()
  for (const [method, path, family, reason] of [
    ['POST', '/v1/anything?key=c4nary', 'gemini', 'unknown_url'],
    ['POST', '/v1/chat/completions/chat/completions', 'openai', 'doubled_path'],
    ['POST', '/v1/chat%2fcompletions', 'openai', 'ambiguous_path'],
    ['POST', `/v1/messages?${'&%61'.repeat(257)}`, 'anthropic', 'crowded_query'],
    ['GET', '/v1/messages', 'anthropic', 'method_not_allowed'],
    ['POST', '/v1beta/models/m:dream', 'gemini', 'unknown_action'],
  ] as const) {
    const name = `llm_gateway_path_refusals_total{family="${family}",reason="${reason}"}`
    const counted = (await scrape()).get(name)
    await (await fetch(origin + path, { method, headers: { 'content-type': 'application/json' } })).text()
    t.match([counted, (await scrape()).get(name)], [0, 1], name)
  }
  t.same([...(await scrape()).keys()].filter((name) => !before.has(name)), [])
})

t.test('what the configuration tells is there at 0: a first event of each is a rise by one', async (t) => {
  const pools = { both: { members: ['gone', 'main'], affinity: 'none', retryOn: ['connect'] } } as const
  const { origin, upstream } = await startGateway(t, {
    upstreams: { main: { url: 'http://127.0.0.1:9' }, gone: { url: 'http://127.0.0.1:9' } },
    pools,
    groups: {
      chat: { protocols: ['chat_completions'], upstream: 'both' },
      few: {
        protocols: ['chat_completions'],
        upstream: 'main',
        limits: { requestsPerMinute: 1, budgets: [{ tokens: 1, period: 'day' }] },
      },
    },
    keys: [
      { id: 'a', group: 'chat', secret: 'sk-a' },
      { id: 'b', group: 'few', secret: 'sk-b', limits: { budgets: [{ tokens: 9, period: 'month' }] } },
    ],
  })
  t.ok(upstream.url)
  const scrape = async (): Promise<Map<string, number>> => samplesOf(await (await fetch(`${origin}/metrics`)).text())
  const ask = async (path: string, key: string, body: string): Promise<void> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    await (await fetch(origin + path, { method: 'POST', body, headers })).text()
  }
  const before = await scrape()
  const chat = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'
  await ask('/v1/v1/chat/completions', 'sk-a', chat)
  await ask('/v1/chat/completions', 'sk-a', '{"model":"m"}')
  await ask('/v1/chat/completions', 'sk-b', chat)
  await ask('/v1/chat/completions', 'sk-b', chat)
  let after = await scrape()
  const rejected = (): number => [...after].reduce((sum, [name, value]) => sum + (/limit_rejections_total/.test(name) ? value : 0), 0)
  while (rejected() === 0) after = await scrape()
  const rises = [...after].filter(([name, value]) => value > 0 && value !== before.get(name) &&
    /(?:failovers|upstream_attempts|limit_rejections|validation_failures|path_normalizations)_total\{/.test(name))
  for (const [name] of rises) t.equal(before.get(name), 0, name)
  for (const counter of ['failovers', 'upstream_attempts', 'limit_rejections', 'validation_failures', 'path_normalizations']) {
    t.ok(rises.some(([name]) => name.startsWith(`llm_gateway_${counter}_total{`)), counter)
  }
  for (const [period, percent] of [['day', 50], ['day', 100], ['month', 80]]) {
    t.equal(before.get(`llm_gateway_budget_warnings_total{group="few",period="${period}",percent="${percent}"}`), 0)
  }
  for (const limit of ['store', 'price']) t.equal(before.get(`llm_gateway_limit_rejections_total{group="few",limit="${limit}"}`), 0)
  t.equal(before.get('llm_gateway_failovers_total{pool="both",reason="connect"}'), 0)
})

t.test('a reload adds its own and makes none twice; there is an end to it', async (t) => {
  const cells = {}
  const options = (group: string): LlmGatewayOptions => ({
    upstreams: { main: { url: 'http://127.0.0.1:9' } }, groups: { [group]: { protocols: ['messages'] } }, metrics: { cells, maxCells: 1 },
  })
  const scrape = async (group: string): Promise<Map<string, number>> => {
    const app = Fastify()
    await app.register(llmGateway, options(group))
    const { body } = await app.inject('/metrics')
    await app.close()
    return samplesOf(body)
  }
  const rejections = (samples: Map<string, number>): string[] => [...samples.keys()].filter((name) => /limit_rejections_total/.test(name))
  t.equal(rejections(await scrape('one')).length, 7)
  t.equal(rejections(await scrape('one')).length, 7)
  t.equal(rejections(await scrape('two')).length, 14)
  const many = (prefix: string): string[][] => Array.from({ length: maxExpected }, (_, i) => [`${prefix}${i}`, 'requests'])
  const meters = newMeters({ maxCells: 1 })
  // What is there takes no room again, neither of these nor of the others.
  for (const count of [10, 10, 10, maxExpected]) meters.recorder.expect('limit_rejections_total', many('a').slice(0, count))
  t.equal(rejections(await samples(meters)).length, maxExpected)
  meters.recorder.expect('limit_rejections_total', many('b'))
  t.equal(rejections(await samples(meters)).length, maxExpected)
  meters.recorder.limitRejected('b1', 'requests')
  meters.recorder.limitRejected('b2', 'requests')
  t.equal((await samples(meters)).get('llm_gateway_limit_rejections_total{group="other",limit="other"}'), 1, 'the cap of all holds')
})

t.test('what a reload adds is there at 0 also where others have no room any more, and overflows nothing', async (t) => {
  const upstream = await startUpstream(t)
  const cells = {}
  const start = async (more: LlmGatewayOptions['groups']) => {
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(llmGateway, {
      upstreams: { main: { url: upstream.url } },
      groups: { few: { protocols: ['chat_completions'] }, ...more },
      lookup: async () => ({ id: 'k', group: 'few', limits: { budgets: [{ tokens: 500, period: 'day' }] } }),
      metrics: { cells, maxCells: 1 },
    })
    return { app, scrape: async () => samplesOf((await app.inject('/metrics')).body) }
  }
  const { app, scrape } = await start({})
  const warnings = 'llm_gateway_budget_warnings_total'
  while (!((await scrape()).get(`${warnings}{group="other",period="other",percent="other"}`) ?? 0)) {
    await app.inject({
      method: 'POST',
      url: '/v1/chat/completions',
      headers: { authorization: 'Bearer k' },
      payload: { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'hi' }] },
    })
  }
  const overflows = async (of: typeof scrape) => [...await of()].filter(([name]) => name.startsWith('llm_gateway_label_overflow_total'))
  const before = await overflows(scrape)
  const limits = { budgets: [{ tokens: 5, period: 'month' as const }] }
  const { scrape: after } = await start({ many: { protocols: ['messages'], limits } })
  for (const percent of [50, 80, 100]) t.equal((await after()).get(`${warnings}{group="many",period="month",percent="${percent}"}`), 0)
  t.strictSame(await overflows(after), before)
})
