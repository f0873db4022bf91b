/** Callers that leave in the middle of their stream: nothing of them stays, here, at the provider or in the limits. */
import { once } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import Fastify from 'fastify'
import llmGateway from '../../plugins/index.js'
import { call, callersGone, gatewayOptions, listen } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { inParallel } from './caller.js'
import { eventually, type Report } from './processes.js'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

const body = '{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'

export async function abortedStreams ({ streams, atOnce }: { readonly streams: number, readonly atOnce: number }): Promise<Report> {
  const upstream = await startUpstream()
  upstream.respond = () => ({ split: 'events', stallAt: 400 })
  const app = Fastify({ forceCloseConnections: true })
  // Each caller that was not let go of takes a place for good.
  await app.register(llmGateway, gatewayOptions(upstream.url, {
    groups: { all: { protocols: ['chat_completions'], limits: { concurrency: atOnce * 2 } } }, log: false, forward: { drain: { maxMs: 0 } },
  }))
  const origin = await listen(app)
  const violations: string[] = []
  const round = async (many: number): Promise<void> => {
    await inParallel(many, atOnce, async () => {
      const { request, reply } = call(`${origin}/v1/chat/completions`, { body })
      const { statusCode, socket } = await reply
      if (statusCode !== 200) violations.push(`a stream was answered ${statusCode}`)
      else await once(await reply, 'data')
      request.destroy()
      if (!socket.closed) await once(socket, 'close')
    })
    await callersGone(app)
    upstream.forget()
  }
  const heapMb = (): number => {
    collect()
    return process.memoryUsage().heapUsed / 1024 / 1024
  }
  const warmUp = Math.min(streams, 2_000)
  await round(warmUp)
  const before = heapMb()
  for (let done = warmUp; done < streams; done += 2_000) await round(Math.min(2_000, streams - done))
  const gone = await eventually(async () => upstream.sockets.size === 0)
  if (!gone) violations.push(`${upstream.sockets.size} connections to the provider stay`)
  const { payload } = await app.inject('/metrics')
  const active = Number(/^llm_gateway_active_requests\{[^}]*\} (\d+)/m.exec(payload)?.[1])
  if (active !== 0) violations.push(`${active} requests are active`)
  const grownMb = Math.round((heapMb() - before) * 10) / 10
  if (grownMb > 5) violations.push(`the heap grew by ${grownMb} MB`)
  await app.close()
  await upstream.close()
  return { violations, slow: [], streams, grownMb }
}
