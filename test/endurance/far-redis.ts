/** Redis is far away: who is limited waits for its answers, and nobody else; nothing is refused that answers in time. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { startRedis, hasRedis } from '../state/redis/server.js'
import { launchGateway, residentMb, temporaryFolder, type Report } from './processes.js'
import { startProvider } from './provider.js'
import { failuresOf, steadyCallers, timesOf } from './steady-callers.js'

export interface FarRedis {
  /** There and back. */
  readonly farMs: number
  readonly commandTimeoutMs: number
  readonly phaseMs: number
  readonly everyMs: number
  /** Of who is not limited. */
  readonly maxAddedMs: number
}

const mostGrowthMb = 64

interface Distance {
  readonly port: number
  oneWayMs: number
  readonly close: () => void
}

/** Between two ends, each byte takes its time, in order. */
async function distanceTo (target: number): Promise<Distance> {
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(target, '127.0.0.1')
    for (const [from, to] of [[near, far], [far, near]] as const) {
      sockets.add(from)
      from.setNoDelay(true)
      from.on('data', (chunk) => setTimeout(() => { if (!to.destroyed) to.write(chunk) }, distance.oneWayMs))
      from.on('error', () => {})
      from.on('close', () => to.destroy())
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = (): void => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  const distance: Distance = { port: Number(Object(server.address()).port), oneWayMs: 0, close }
  return distance
}

export async function farRedis ({ farMs, commandTimeoutMs, phaseMs, everyMs, maxAddedMs }: FarRedis): Promise<Report> {
  if (!hasRedis) return { violations: [], slow: [], skipped: 'redis-server is not installed' }
  const folder = temporaryFolder()
  const server = await startRedis()
  const distance = await distanceTo(server.port)
  const provider = await startProvider({ delayMs: () => 5 })
  const gateway = await launchGateway(folder.path, {
    upstreams: { main: { url: provider.url, credential: 'provider-key' } },
    groups: {
      limited: { protocols: ['chat_completions'], limits: { balance: 1e12, concurrency: 10_000 } },
      free: { protocols: ['chat_completions'] },
    },
    keys: [{ id: 'limited', group: 'limited', secret: 'key-limited' }, { id: 'free', group: 'free', secret: 'key-free' }],
    state: { engine: 'redis', url: `redis://127.0.0.1:${distance.port}`, path: './data', commandTimeoutMs },
    overload: false,
  })
  const callers = steadyCallers(gateway.origin, { limited: 'key-limited', free: 'key-free' }, everyMs)
  await pause(1_000)
  const nearAt = performance.now()
  await pause(phaseMs)
  const before = residentMb(gateway.pid)
  const farAt = performance.now()
  distance.oneWayMs = farMs / 2
  await pause(phaseMs)
  const overAt = performance.now()
  const grownMb = residentMb(gateway.pid) - before
  const answers = await callers.end()
  const violations = Object.entries(answers).flatMap(([group, own]) => failuresOf(group, own))
  if (grownMb > mostGrowthMb) violations.push(`it took ${grownMb} MB more`)
  const times = (group: string) => ({
    near: timesOf(answers[group] ?? [], nearAt, farAt), far: timesOf(answers[group] ?? [], farAt, overAt),
  })
  const [limited, free] = [times('limited'), times('free')]
  const slow = [
    ...free.far.p99 > free.near.p99 + maxAddedMs ? [`free: p99 ${free.far.p99} ms, with a Redis that is near ${free.near.p99}`] : [],
    ...limited.far.p99 > limited.near.p99 + 2 * farMs + commandTimeoutMs
      ? [`limited: p99 ${limited.far.p99} ms, with a Redis that is near ${limited.near.p99}`]
      : [],
  ]
  await gateway.kill('SIGTERM')
  distance.close()
  await server.stop()
  await provider.close()
  folder.remove()
  return {
    violations,
    slow,
    farMs,
    commandTimeoutMs,
    grownMb,
    limited,
    free,
    roundTrips: Math.round((limited.far.p50 - limited.near.p50) / farMs * 10) / 10,
  }
}
