/** Whatever callers make up (models, keys, paths, methods), the metrics stay as many as they may be. */
import Fastify from 'fastify'
import { randomBytes } from 'node:crypto'
import llmGateway from '../../plugins/index.js'
import { everyProtocol, gatewayOptions, secret } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { inParallel } from './caller.js'
import { quantile, type Report } from './processes.js'

const statuses = [200, 200, 201, 400, 401, 404, 418, 429, 500, 503, 529, 599]
const methods = ['POST', 'GET', 'PUT', 'DELETE', 'PATCH', 'HEAD'] as const

export async function cardinality ({ requests, atOnce }: { readonly requests: number, readonly atOnce: number }): Promise<Report> {
  const upstream = await startUpstream()
  upstream.respond = ({ json }) => ({
    status: statuses[Math.floor(Math.random() * statuses.length)] ?? 200,
    body: {
      id: 'c',
      object: 'chat.completion',
      model: json.model,
      choices: [],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    },
  })
  const app = Fastify()
  await app.register(llmGateway, gatewayOptions(upstream.url, { groups: { all: { protocols: everyProtocol } }, log: false }))
  await inParallel(requests, atOnce, async (i) => {
    const made = randomBytes(6).toString('hex')
    const key = i % 5 === 0 ? made : secret
    const url = i % 3 === 0 ? `/v1/${made}` : i % 3 === 1 ? '/v1/chat/completions' : `/v1beta/models/${made}:generateContent`
    const body = i % 3 === 2 ? '{"contents":[{"parts":[{"text":"hi"}]}]}' : JSON.stringify({ model: made, messages: [] })
    const headers = { authorization: `Bearer ${key}`, 'x-goog-api-key': key, 'content-type': 'application/json' }
    await app.inject({ method: i % 10 === 9 ? methods[i % methods.length] ?? 'POST' : 'POST', url, headers, payload: body })
    if (upstream.seen.length > 1_000) upstream.forget()
  })
  const times: number[] = []
  let text = ''
  for (let i = 0; i < 20; i += 1) {
    const since = performance.now()
    text = (await app.inject('/metrics')).payload
    times.push(performance.now() - since)
  }
  const series = text.split('\n').filter((line) => line !== '' && line[0] !== '#').length
  const labelSets = new Set(text.split('\n').filter((line) => line.startsWith('llm_gateway_requests_total{'))).size
  const scrapeMs = quantile(times, 0.5)
  const violations: string[] = []
  if (labelSets > 1_001) violations.push(`${labelSets} label sets of one metric`)
  await app.close()
  await upstream.close()
  return {
    violations,
    slow: scrapeMs > 250 ? [`a scrape takes ${scrapeMs} ms`] : [],
    requests,
    series,
    labelSets,
    scrapeMs,
    kilobytes: Math.round(text.length / 1024),
  }
}
