/** Nobody reads the log any more: nobody waits for it, memory is bounded, what is dropped is counted, and the end comes. */
import { createCaller, inParallel, type Answer } from './caller.js'
import { launchGateway, quantile, residentMb, temporaryFolder, type Report } from './processes.js'
import { startProvider } from './provider.js'
import { failuresOf } from './steady-callers.js'
import { secret } from '../helpers/gateway.js'

export interface UnreadLog {
  /** As many with a reader as without. */
  readonly requests: number
  readonly atOnce: number
  /** Fewer lines fit into what may wait. */
  readonly drops: boolean
  readonly maxAddedMs: number
}

/** What may wait is 4 MiB of text, which is several times that in strings. */
const mostGrowthMb = 64
const mostEndMs = 15_000

export async function unreadLog ({ requests, atOnce, drops, maxAddedMs }: UnreadLog): Promise<Report> {
  const folder = temporaryFolder()
  const provider = await startProvider()
  const gateway = await launchGateway(folder.path, {
    log: { level: 'info' },
    upstreams: { main: { url: provider.url, credential: 'provider-key' } },
    groups: { all: { protocols: ['chat_completions'] } },
    keys: [{ id: 'one', group: 'all', secret }],
    state: { engine: 'memory' },
    overload: false,
  })
  const { call, close } = createCaller(atOnce)
  const some = async (name: string): Promise<Answer[]> => await inParallel(
    requests, atOnce, async (i) => await call(gateway.origin, { secret, tag: `${name}${i}` })
  )
  const read = await some('r')
  const before = residentMb(gateway.pid)
  gateway.stopReading()
  const unread = await some('u')
  const grownMb = residentMb(gateway.pid) - before
  const metrics = await (await fetch(`${gateway.origin}/metrics`)).text()
  const dropped = Number(/^llm_gateway_log_lines_dropped_total (\d+)$/m.exec(metrics)?.[1] ?? 0)
  const endedFrom = performance.now()
  await gateway.kill('SIGTERM')
  const endMs = Math.round(performance.now() - endedFrom)
  await close()
  await provider.close()
  folder.remove()
  const violations = failuresOf('log', [...read, ...unread])
  if (drops && dropped === 0) violations.push('no line was dropped')
  if (grownMb > mostGrowthMb) violations.push(`it took ${grownMb} MB more`)
  if (endMs > mostEndMs) violations.push(`the end took ${endMs} ms`)
  const [readP99, unreadP99] = [read, unread].map((answers) => quantile(answers.map(({ ms }) => ms), 0.99))
  const slow = Number(unreadP99) > Number(readP99) + maxAddedMs ? [`p99 ${unreadP99} ms without a reader, ${readP99} with one`] : []
  return { violations, slow, requests, readP99, unreadP99, dropped, grownMb, endMs }
}
