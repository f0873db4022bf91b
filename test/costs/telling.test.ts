/** The places beside metrics and ledger that tell what a request cost, and whose it was. */
import { Writable } from 'node:stream'
import Fastify from 'fastify'
import t from 'tap'
import llmGateway from '../../plugins/index.js'
import { gatewayOptions, secret } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { startTracing } from '../tracing/sdk.js'

const chat = {
  id: 'c',
  object: 'chat.completion',
  model: 'gpt-5',
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'hi' } }],
  usage: { prompt_tokens: 1_000, completion_tokens: 10, total_tokens: 1_010 },
}

t.test('the line and the span of a request tell its cost to the last digit, and the line its labels', async (t) => {
  const { finished } = startTracing(t, { sdk: true, http: false, undici: false })
  const upstream = await startUpstream(t)
  const lines: unknown[] = []
  const stream = new Writable({
    write: (line: Buffer, _encoding, done) => {
      lines.push(JSON.parse(line.toString()))
      done()
    },
  })
  const app = Fastify({ logger: { level: 'info', stream } })
  t.teardown(async () => await app.close())
  await app.register(llmGateway, {
    ...gatewayOptions(upstream.url, { prices: { models: { 'gpt-5': { input: 1.1, output: 2.3 } } } }),
    groups: { all: { protocols: ['chat_completions'], labels: { team: 'search', stage: 'test' } } },
    keys: [{ id: 'caller', group: 'all', secret, labels: { team: 'shop' } }],
  })
  upstream.queue({ headers: { 'content-type': 'application/json' }, body: chat })
  const { statusCode } = await app.inject({
    method: 'POST',
    url: '/v1/chat/completions',
    headers: { authorization: `Bearer ${secret}` },
    payload: { model: 'gpt-5', messages: [{ role: 'user', content: 'hi' }] },
  })
  t.equal(statusCode, 200)
  // 1000 x 1.1 + 10 x 2.3, of a million
  const told = lines.filter((line) => Object(line).msg === 'model request')
  t.hasStrict(told, [{ llm: { cost: '0.001123', currency: 'USD', labels: { team: 'shop', stage: 'test' } } }])
  t.equal(told.length, 1)
  const spans = finished().filter(({ attributes }) => 'llm_gateway.outcome' in attributes)
  t.match(spans, [{ attributes: { 'llm_gateway.cost': '0.001123', 'llm_gateway.currency': 'USD' } }])
})
