/** Bodies that cost more than their bytes, from several callers at once, within a small heap: it lives, and others are served meanwhile. */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { watchHealth } from './health-watch.js'
import { residentMb, temporaryFolder, type Report } from './processes.js'
import { secret } from '../helpers/gateway.js'
import { launch, originOf, program } from '../helpers/launch.js'

interface Options {
  readonly megabytes: number
  readonly atOnce: number
  readonly heapMb: number
  /** How long the loop may be held at once. */
  readonly mostHeldMs: number
  /** How long somebody else may wait, for the loop and for a core of the machine. */
  readonly mostWaitMs: number
  /** How much memory it may take, in times of the bodies. */
  readonly mostTimesBody: number
}

/** As many of `part` as the size takes, in place of the dots of `frame`. */
function filled (frame: string, part: (at: number) => string, bytes: number, end = ''): Buffer {
  const [before = '', after = ''] = frame.split('...')
  const parts = [before]
  for (let at = 0, length = 0; length < bytes - 256; at += 1) {
    const text = part(at)
    length += text.length
    parts.push(text)
  }
  return Buffer.from(parts.join('') + end + after)
}

const shapes: Readonly<Record<string, (bytes: number) => Buffer>> = {
  'flat objects': (bytes) => filled('{"model":"m","messages":[{"role":"user","content":"hi"}],"a":[...]}', () => '{},', bytes, '{}'),
  keys: (bytes) => filled('{"model":"m","messages":[{"role":"user","content":"hi"}],"a":{...}}', (at) => `"k${at}":0,`, bytes, '"z":0'),
  'a late duplicate': (bytes) => filled(
    '{"model":"m","messages":[{"role":"user","content":"hi"}],"a":{...}}', (at) => `"k${at}":0,`, bytes, '"k0":1'
  ),
  'nested lists': (bytes) => filled('{"model":"m","messages":[{"role":"user","content":"hi"}],"a":...}', () => '[', bytes),
  'nested objects': (bytes) => filled('{"model":"m","messages":[{"role":"user","content":"hi"}],"a":...}', () => '{"a":', bytes),
  escapes: (bytes) => filled('{"model":"m","messages":[{"role":"user","content":"..."}]}', () => '\\u00e9\\n', bytes),
  'one long text': (bytes) => filled('{"model":"m","messages":[{"role":"user","content":"..."}]}', () => 'words and words ', bytes),
  'a text that is not closed': (bytes) => filled('{"model":"m","messages":[{"role":"user","content":"...', () => '\\"', bytes),
}

async function send (origin: string, body: Buffer): Promise<number> {
  const sent = request(`${origin}/v1/chat/completions`, {
    method: 'POST', headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'content-length': body.length },
  })
  sent.on('error', () => {})
  // A refused upload is cut where it takes too long, its reply long read.
  sent.on('socket', (socket) => socket.on('error', () => {}))
  sent.end(body)
  try {
    const [reply] = await once(sent, 'response')
    await text(reply)
    return Number(reply.statusCode)
  } catch {
    return 0
  }
}

export async function bigBodies ({ megabytes, atOnce, heapMb, mostHeldMs, mostWaitMs, mostTimesBody }: Options): Promise<Report> {
  const folder = temporaryFolder()
  // It reads nothing of what it gets: what it took would count as the gateway's.
  const provider = createServer((request, response) => {
    request.resume().on('end', () => response.setHeader('content-type', 'application/json')
      .end('{"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}'))
  }).listen(0, '127.0.0.1')
  await once(provider, 'listening')
  const file = `${folder.path}/gateway.yaml`
  writeFileSync(file, JSON.stringify({
    log: { level: 'error' },
    upstreams: { main: { url: `http://127.0.0.1:${String(Object(provider.address()).port)}`, credential: 'provider-key' } },
    groups: { all: { protocols: ['chat_completions'] } },
    keys: [{ id: 'one', group: 'all', secret }],
    state: { engine: 'memory' },
    overload: { maxLoopDelayMs: 0 },
  }))
  const gateway = launch({ teardown: () => {} }, program, ['start', '--config', file], {
    PORT: '0', NODE_OPTIONS: `--max-old-space-size=${heapMb}`,
  })
  const origin = await originOf(gateway)
  const pid = Number(gateway.process.pid)
  const isUp = (): boolean => gateway.process.exitCode === null && gateway.process.signalCode === null
  const health = await watchHealth(origin, pid)
  const idleMb = residentMb(pid)
  const violations: string[] = []
  const slow: string[] = []
  const figures: Record<string, object> = {}
  for (const [shape, make] of Object.entries(shapes)) {
    const body = make(megabytes * 1024 * 1024)
    const memory = { mostMb: idleMb }
    const looking = setInterval(() => {
      if (isUp()) memory.mostMb = Math.max(memory.mostMb, residentMb(pid))
    }, 10)
    await health.told()
    const statuses = await Promise.all(Array.from({ length: atOnce }, async () => await send(origin, body)))
    clearInterval(looking)
    const { longestMs, heldMs, others } = await health.told()
    if (others.length > 0) violations.push(`${shape}: /health answered ${others.join()}`)
    const odd = statuses.filter((status) => ![200, 400, 413, 503].includes(status))
    if (odd.length > 0) violations.push(`${shape}: ${odd.join()}`)
    const timesBody = (memory.mostMb - idleMb) / (megabytes * atOnce)
    if (heldMs > mostHeldMs) slow.push(`${shape}: the loop was held for ${Math.round(heldMs)} ms`)
    if (longestMs > mostWaitMs) slow.push(`${shape}: somebody else waited ${Math.round(longestMs)} ms`)
    if (timesBody > mostTimesBody) slow.push(`${shape}: ${timesBody.toFixed(1)} times the bodies in memory`)
    figures[shape] = {
      statuses: [...new Set(statuses)],
      longestMs: Math.round(longestMs),
      heldMs: Math.round(heldMs),
      timesBody: Number(timesBody.toFixed(1)),
    }
    if (!isUp()) {
      violations.push(`${shape}: it ended`)
      break
    }
  }
  await health.end()
  gateway.process.kill('SIGKILL')
  await gateway.exited
  provider.close()
  provider.closeAllConnections()
  folder.remove()
  return { violations, slow, megabytes, atOnce, heapMb, idleMb, figures }
}
