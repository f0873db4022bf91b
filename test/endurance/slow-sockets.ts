/** Callers that dribble their heads or bodies: all are closed in time, and nobody else waits for it. */
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { launchGateway, quantile, temporaryFolder, type Report } from './processes.js'

export interface SlowSockets {
  readonly sockets: number
  /** `listen.requestTimeoutMs` of the gateway. */
  readonly timeoutMs: number
}

const halfHead = 'POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n'
const halfBody = `${halfHead}content-type: application/json\r\nauthorization: Bearer key-a\r\ncontent-length: 1000\r\n\r\n{`
/** The server looks for them that often, and one that was told has a second to close its side. */
const graceMs = 5_000 + 5_000

export async function slowSockets ({ sockets, timeoutMs }: SlowSockets): Promise<Report> {
  const folder = temporaryFolder()
  const gateway = await launchGateway(folder.path, {
    listen: { requestTimeoutMs: timeoutMs },
    upstreams: { main: { simulate: true } },
    groups: { chat: { protocols: ['chat_completions'] } },
    keys: [{ id: 'a', group: 'chat', secret: 'key-a' }],
    state: { engine: 'memory' },
  })
  const before = await goodRequests(gateway.origin, 20, 10)
  const port = Number(new URL(gateway.origin).port)
  const open = new Set<Socket>()
  for (let i = 0; i < sockets; i++) {
    // Half open: it does not close its side when the gateway does.
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).resume()
    socket.on('error', () => {})
    socket.on('connect', () => socket.write(i % 2 === 0 ? halfHead : halfBody))
    socket.on('close', () => open.delete(socket))
    open.add(socket)
    if (i % 200 === 199) await pause(20)
  }
  const startedAt = performance.now()
  const good: number[] = []
  const failures: string[] = []
  while (open.size > 0 && performance.now() - startedAt < timeoutMs + graceMs) {
    // A byte of a header now and then, which keeps it going.
    for (const socket of open) socket.write('x')
    const round = await goodRequests(gateway.origin, 1, 200)
    good.push(...round.ms)
    failures.push(...round.failures)
  }
  const closedMs = Math.round(performance.now() - startedAt)
  const left = open.size
  for (const socket of open) socket.destroy()
  await gateway.kill('SIGKILL')
  folder.remove()
  const violations = [...failures, ...left > 0 ? [`${left} connections are still open`] : []]
  const [quiet, busy] = [quantile(before.ms, 0.99), quantile(good, 0.99)]
  return {
    violations,
    slow: busy > 2 * quiet + 50 ? [`other callers waited ${busy} ms, without slow ones ${quiet} ms`] : [],
    sockets,
    closedMs,
    good: good.length,
    quietMs: quiet,
    busyMs: busy,
  }
}

async function goodRequests (origin: string, count: number, everyMs: number): Promise<{ ms: number[], failures: string[] }> {
  const ms: number[] = []
  const failures: string[] = []
  for (let i = 0; i < count; i++) {
    const startedAt = performance.now()
    const headers = { authorization: 'Bearer key-a', 'content-type': 'application/json' }
    const body = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'
    const reply = await fetch(`${origin}/v1/chat/completions`, { method: 'POST', headers, body }).catch((error: unknown) => error)
    if (!(reply instanceof Response) || reply.status !== 200) {
      failures.push(
      `another caller got ${reply instanceof Response ? reply.status : String(reply)}`
      )
    } else await reply.text()
    ms.push(performance.now() - startedAt)
    await pause(everyMs)
  }
  return { ms, failures }
}
