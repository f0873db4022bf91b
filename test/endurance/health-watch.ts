/** A thread that asks for `/health` again and again, and how long that took: the loop of who sends large bodies is busy itself. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { extname } from 'node:path'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

const restMs = 5

export interface Watched {
  readonly longestMs: number
  /** The longest without what the gateway's loop, or who asked, waited for a core meanwhile: beside busy neighbours, nearer to its own. */
  readonly heldMs: number
  /** What was not 200; 0 where there was no answer. */
  readonly others: readonly number[]
}

export interface HealthWatch {
  /** Since the last time that it was asked. */
  readonly told: () => Promise<Watched>
  readonly end: () => Promise<void>
}

export async function watchHealth (origin: string, pid: number): Promise<HealthWatch> {
  const worker = new Worker(new URL(`./health-watch${extname(import.meta.url)}`, import.meta.url), { workerData: { origin, pid } })
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
  const { longestMs, heldMs, others } = Object(told)
  return { longestMs: Number(longestMs), heldMs: Number(heldMs), others: Array.isArray(others) ? others.map(Number) : [] }
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

/** How long a thread has waited for a core so far. 0 where no kernel tells. */
function coreWaitMs (thread: string): number {
  try {
    const [, waitedNs] = readFileSync(`/proc/${thread}/schedstat`, 'latin1').split(' ')
    return Number(waitedNs) / 1e6
  } catch {
    return 0
  }
}

async function watch (port: NonNullable<typeof parentPort>, url: string, pid: number): Promise<never> {
  let longestMs = 0
  let heldMs = 0
  let others: number[] = []
  port.on('message', () => {
    port.postMessage({ longestMs, heldMs, others })
    longestMs = 0
    heldMs = 0
    others = []
  })
  // The first thread of a process has its loop.
  const waits = (): [loopMs: number, ownMs: number] => [coreWaitMs(`${pid}/task/${pid}`), coreWaitMs('thread-self')]
  for (let asked = 0; ; asked += 1) {
    const [loopMs, ownMs] = waits()
    const since = performance.now()
    const status = await ask(url)
    const tookMs = performance.now() - since
    // The first ones connect and compile.
    if (asked >= 20) {
      longestMs = Math.max(longestMs, tookMs)
      const [loopsMs, ownsMs] = waits()
      // Not their sum: both may have waited at the same time.
      heldMs = Math.max(heldMs, tookMs - Math.max(loopsMs - loopMs, ownsMs - ownMs))
    }
    if (status !== 200) others.push(status)
    if (asked === 20) port.postMessage('ready')
    await pause(restMs)
  }
}

const { origin, pid } = Object(workerData)
if (!isMainThread && parentPort !== null && typeof origin === 'string') watch(parentPort, `${origin}/health`, Number(pid))
