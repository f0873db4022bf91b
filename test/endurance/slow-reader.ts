/** A caller that reads slowly holds its provider back, and not the gateway's memory. */
import { createServer, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { call, secret } from '../helpers/gateway.js'
import { launchGateway, residentMb, temporaryFolder, type Report } from './processes.js'

const chunk = { id: 'c', object: 'chat.completion.chunk', model: 'm' }
const event = Buffer.from(
  `data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, delta: { content: '.'.repeat(4_000) }, finish_reason: null }] })}\n\n`
)
const last = `data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\n` +
  'data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[],' +
  '"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}\n\ndata: [DONE]\n\n'

export async function slowReader ({ megabytes, stillMs }: { readonly megabytes: number, readonly stillMs: number }): Promise<Report> {
  const folder = temporaryFolder()
  let written = 0
  const server = createServer((request, response) => {
    request.resume().on('end', () => { write(response, megabytes * 1024 * 1024, (bytes) => { written += bytes }).catch(() => {}) })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = Object(server.address())
  const gateway = await launchGateway(folder.path, {
    upstreams: { main: { url: `http://127.0.0.1:${port}`, credential: 'provider-key' } },
    groups: { all: { protocols: ['chat_completions'] } },
    keys: [{ id: 'one', group: 'all', secret }],
    state: { engine: 'memory' },
  })
  const violations: string[] = []
  const body = '{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}'
  await (await call(`${gateway.origin}/v1/chat/completions`, { body: body.replace('"stream":true', '"stream":false') }).reply).destroy()
  const before = residentMb(gateway.pid)
  const reply = await call(`${gateway.origin}/v1/chat/completions`, { body }).reply
  await pause(stillMs)
  const heldMb = Math.round(written / 1024 / 1024)
  const stillMb = residentMb(gateway.pid) - before
  let bytes = 0
  let peakMb = stillMb
  for await (const chunk of reply) {
    bytes += chunk.length
    if (bytes % (16 * 1024 * 1024) < chunk.length) peakMb = Math.max(peakMb, residentMb(gateway.pid) - before)
  }
  const metrics = await (await fetch(`${gateway.origin}/metrics`)).text()
  if (bytes < megabytes * 1024 * 1024) violations.push(`the caller got ${bytes} bytes`)
  if (!/llm_gateway_tokens_total\{[^}]*direction="output"[^}]*\} 4/.test(metrics)) violations.push('its usage was not counted')
  // Both connections have buffers of the system's, of some megabytes each.
  if (heldMb > 40) violations.push(`${heldMb} MB were taken from the provider while nobody read`)
  await gateway.kill('SIGTERM')
  server.close()
  server.closeAllConnections()
  folder.remove()
  return { violations, slow: Math.max(stillMb, peakMb) > 48 ? [`memory grew by ${peakMb} MB`] : [], megabytes, heldMb, stillMb, peakMb }
}

async function write (response: ServerResponse, bytes: number, wrote: (bytes: number) => void): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (let done = 0; done < bytes; done += event.length) {
    if (!response.write(event)) await once(response, 'drain')
    wrote(event.length)
  }
  response.end(last)
}
