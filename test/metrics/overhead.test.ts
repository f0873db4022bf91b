import { once } from 'node:events'
import { request } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { listen, read, secret, startGateway } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { samplesOf, sumOf } from './meters.js'

// Timers may be a millisecond early.
const slackMs = 5

t.test('waits for the upstream and for the caller are no overhead', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url)
  const url = await listen(app)
  const body = '{"model":"gpt-5","stream":true,"messages":[{"role":"user","content":"hi"}]}'
  const waits = { body: 150, firstChunk: 200, end: 100 }
  upstream.queue({ split: [100], before: async (write) => await setTimeout([waits.firstChunk, waits.end][write]) })
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'content-length': body.length }
  const sent = request(`${url}/v1/chat/completions`, { method: 'POST', agent: false, headers })
  sent.write(body.slice(0, 20))
  await setTimeout(waits.body)
  sent.end(body.slice(20))
  const [reply] = await once(sent, 'response')
  await read(reply)
  await settled.next()

  const samples = samplesOf((await app.inject('/metrics')).body)
  const seconds = (name: string): number => sumOf(samples, `llm_gateway_${name}_seconds_sum`)
  const waited = (waits.body + waits.firstChunk + waits.end - slackMs) / 1_000
  t.equal(sumOf(samples, 'llm_gateway_overhead_seconds_count'), 1)
  t.ok(seconds('overhead') > 0)
  t.ok(seconds('request_duration') >= waited)
  t.ok(seconds('overhead') <= seconds('request_duration') - waited, `${seconds('overhead')} of ${seconds('request_duration')}`)
  t.ok(seconds('time_to_first_chunk') >= (waits.body + waits.firstChunk - slackMs) / 1_000)
})
