/** SIGTERM while streams run: none is cut, nobody new is let in, and the process ends with the last of them. */
import { startProvider } from './provider.js'
import { createCaller, inParallel } from './caller.js'
import { eventually, launchGateway, temporaryFolder, type Report } from './processes.js'
import { secret } from '../helpers/gateway.js'

export async function drain ({ streams, streamMs }: { readonly streams: number, readonly streamMs: number }): Promise<Report> {
  const folder = temporaryFolder()
  const provider = await startProvider({ delayMs: () => streamMs / 5 })
  const gateway = await launchGateway(folder.path, {
    listen: { host: '127.0.0.1', port: 8080, shutdownGraceMs: streamMs * 5 + 20_000 },
    upstreams: { main: { url: provider.url, credential: 'provider-key' } },
    groups: { all: { protocols: ['chat_completions'] } },
    keys: [{ id: 'one', group: 'all', secret }],
    state: { engine: 'memory' },
    log: { level: 'fatal' },
  })
  const { call, close } = createCaller(streams)
  const violations: string[] = []
  const running = inParallel(streams, streams, async (i) => {
    const answer = await call(gateway.origin, { secret, tag: `s${i}`, stream: true })
    return { ...answer, endedAt: performance.now() }
  })
  if (!await eventually(async () => provider.seen.size === streams)) violations.push(`only ${provider.seen.size} streams began`)
  // Has a connection of its own by then, as a caller with keep-alive has.
  const later = createCaller(1)
  await later.call(gateway.origin, { secret: 'none', tag: 'before' })
  const ended = gateway.kill('SIGTERM').then(() => performance.now())
  await new Promise((resolve) => setTimeout(resolve, streamMs / 10))
  const refused = await later.call(gateway.origin, { secret, tag: 'late' })
  if (refused.status !== 0 && refused.status !== 503) violations.push(`a new request is answered ${refused.status}`)
  if (refused.status === 503 && refused.headers['connection'] !== 'close') {
    violations.push('a refused caller is not told that the connection ends')
  }
  const answers = await running
  const cut = answers.filter(({ whole }) => !whole).length
  if (cut > 0) violations.push(`${cut} of ${streams} streams were cut`)
  const overMs = Math.round(await ended - Math.max(...answers.map(({ endedAt }) => endedAt)))
  await later.close()
  await close()
  await provider.close()
  folder.remove()
  return {
    violations,
    slow: overMs > 1_000 ? [`the process ended ${overMs} ms after its last stream`] : [],
    streams,
    cut,
    late: refused.status,
    overMs,
  }
}
