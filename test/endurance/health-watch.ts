/** A thread that asks for `/health` again and again, and how long that took: the loop of who sends large bodies is busy itself. */
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { extname } from 'node:path'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

const restMs = 5

export interface Watched {
  readonly longestMs: number
  /** What was not 200; 0 where there was no answer. */
  readonly others: readonly number[]
}

export interface HealthWatch {
  /** Since the last time that it was asked. */
  readonly told: () => Promise<Watched>
  readonly end: () => Promise<void>
}

export async function watchHealth (origin: string): Promise<HealthWatch> {
  const worker = new Worker(new URL(`./health-watch${extname(import.meta.url)}`, import.meta.url), { workerData: { origin } })
  // Connected and warm.
  await once(worker, 'message')
  return {
    told: async () => {
      worker.postMessage('tell')
      const [watched]: unknown[] = await once(worker, 'message')
      return asWatched(watched)
    },
    end: async () => { await worker.terminate() },
  }
}

function asWatched (told: unknown): Watched {
  const { longestMs, others } = Object(told)
  return { longestMs: Number(longestMs), others: Array.isArray(others) ? others.map(Number) : [] }
}

async function ask (url: string): Promise<number> {
  try {
    const reply = await fetch(url)
    await reply.text()
    return reply.status
  } catch {
    return 0
  }
}

async function watch (port: NonNullable<typeof parentPort>, url: string): Promise<never> {
  let longestMs = 0
  let others: number[] = []
  port.on('message', () => {
    port.postMessage({ longestMs, others })
    longestMs = 0
    others = []
  })
  for (let asked = 0; ; asked += 1) {
    const since = performance.now()
    const status = await ask(url)
    // The first ones connect and compile.
    if (asked >= 20) longestMs = Math.max(longestMs, performance.now() - since)
    if (status !== 200) others.push(status)
    if (asked === 20) port.postMessage('ready')
    await pause(restMs)
  }
}

const { origin } = Object(workerData)
if (!isMainThread && parentPort !== null && typeof origin === 'string') watch(parentPort, `${origin}/health`)
