import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { plainText, renderText } from '../../plugins/metrics/exposition.js'
import { keys, startGateway } from '../conformance/gateway.js'
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
    'key_lookups_total{result="stale"}',
    'ledger_write_failures_total',
    'shed_total{reason="queue_timeout"}',
    'log_lines_dropped_total',
  ]
  for (const name of expected) t.equal(before.get(`llm_gateway_${name}`), 0, name)
  t.notOk([...before.keys()].some((name) => name.includes('reason="not_authorized"')), 'no host of its own refuses in auth')
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
  meters.recorder.settled(settledRequest({ stream: true, usageMissing: 'no_usage' }))
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
