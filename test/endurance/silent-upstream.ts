/** A provider that falls silent, before its headers or in the middle: the caller is told in time, and nothing is held for it. */
import Fastify from 'fastify'
import llmGateway from '../../plugins/index.js'
import { call, gatewayOptions, listen, read } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { inParallel } from './caller.js'
import { quantile, type Report } from './processes.js'

const body = (stream: boolean): string => JSON.stringify({ model: 'm', stream, messages: [{ role: 'user', content: 'hi' }] })

export async function silentUpstream ({ requests, timeoutMs }: { readonly requests: number, readonly timeoutMs: number }): Promise<Report> {
  const upstream = await startUpstream()
  const app = Fastify()
  await app.register(llmGateway, gatewayOptions(upstream.url, {
    groups: { all: { protocols: ['chat_completions'], limits: { concurrency: requests } } },
    log: false,
    forward: { headersTimeoutMs: timeoutMs, idleTimeoutMs: timeoutMs },
  }))
  const origin = await listen(app)
  const violations: string[] = []
  const round = async (stallAt: number | 'headers'): Promise<number[]> => {
    upstream.respond = () => ({ split: 'events', stallAt })
    return await inParallel(requests, requests, async () => {
      const since = performance.now()
      const reply = await call(`${origin}/v1/chat/completions`, { body: body(stallAt !== 'headers') }).reply
      const { bytes, cut } = await read(reply)
      if (stallAt === 'headers' && reply.statusCode !== 504) violations.push(`silence before the headers is answered ${reply.statusCode}`)
      if (stallAt !== 'headers' && !cut && !bytes.includes('"error"')) violations.push('silence in the middle ends cleanly')
      return performance.now() - since
    })
  }
  const beforeMs = await round('headers')
  const middleMs = await round(400)
  // All places are free again: the same number is let in once more.
  upstream.clear()
  await inParallel(requests, requests, async () => {
    const { statusCode } = await call(`${origin}/v1/chat/completions`, { body: body(false) }).reply
    if (statusCode !== 200) violations.push(`afterwards a request is answered ${statusCode}`)
  })
  await app.close()
  await upstream.close()
  const figures = { headersMs: quantile(beforeMs, 0.5), middleMs: quantile(middleMs, 0.5) }
  const slow = Object.entries(figures)
    .filter(([, ms]) => Math.abs(ms - timeoutMs) > timeoutMs * 0.1 + 1_000)
    .map(([name, ms]) => `${name} is ${ms} where ${timeoutMs} is configured`)
  return { violations, slow, requests, ...figures }
}
