/** Model requests of every protocol, streamed and not, left early and broken off, through a gateway and its upstream. */
import { once } from 'node:events'
import { protocolNames, protocols, type ProtocolName } from '../../plugins/protocols/index.js'
import type { ModelCall } from '../../plugins/core/call/model-call.js'
import { call, read, secret, type Call, type Gateway } from '../helpers/gateway.js'
import type { Upstream } from '../helpers/upstream.js'

const streamed = protocolNames.filter((name) => name !== 'embeddings')

export interface Traffic {
  /** Everything that was settled. */
  readonly settled: ModelCall[]
}

/** Runs one request at a time, each to its settlement. */
export async function sendTraffic (gateway: Gateway, url: string, upstream: Upstream): Promise<Traffic> {
  const settled: ModelCall[] = []
  const pass = async (running: Call): Promise<void> => {
    await read(await running.reply)
    settled.push(await gateway.settled.next())
  }
  for (const name of protocolNames) await pass(send(url, name, false))
  for (const name of streamed) await pass(send(url, name, true))
  for (const name of streamed) settled.push(await leave(gateway, url, upstream, name))
  upstream.queue({ split: 'events', cutAt: 200 })
  await pass(send(url, 'chat_completions', true))
  upstream.queue({ status: 503, body: { error: { message: 'overloaded' } } })
  await pass(send(url, 'messages', false))
  await pass(call(`${url}/v1/chat/completions`, { body: '{}', headers: { authorization: 'Bearer sk-unknown-0123456789' } }))
  return { settled }
}

export function send (url: string, name: ProtocolName, stream: boolean): Call {
  const { family, example: { model, path, body } } = protocols.find((protocol) => protocol.name === name) ?? protocols[0]
  const { versionHeader } = family
  const headers = versionHeader === null ? {} : { [versionHeader.name]: String(versionHeader.accepted[0]) }
  const [header, value] = family.upstreamHeader(secret)
  const streamPath = path(model).replace(':generateContent', ':streamGenerateContent?alt=sse')
  const payload = JSON.stringify(stream && family.name !== 'gemini' ? { ...body(model), stream } : body(model))
  return call(url + (stream ? streamPath : path(model)), { body: payload, headers: { authorization: '', ...headers, [header]: value } })
}

/** The caller leaves after the first bytes; the upstream goes on to its end, and the gateway reads on for the usage. */
async function leave (gateway: Gateway, url: string, upstream: Upstream, name: ProtocolName): Promise<ModelCall> {
  let goOn = (): void => {}
  const left = new Promise<void>((resolve) => { goOn = resolve })
  upstream.queue({ split: 'events', before: (write) => write === 1 ? left : null })
  const { request, reply } = send(url, name, true)
  await once(await reply, 'data')
  request.destroy()
  goOn()
  return await gateway.settled.next()
}
