/**
 * Three times as many requests as may run: what is served stays what it was, what is refused is refused at once, and it is over when they
 * are.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { createCaller, inParallel, type Answer } from './caller.js'
import { startProvider } from './provider.js'
import { launchGateway, quantile, temporaryFolder, type Report } from './processes.js'
import { secret } from '../helpers/gateway.js'

interface Options {
  readonly maxActive: number
  /** How long a reply of the provider takes: with `maxActive` it is what may be served in a second. */
  readonly replyMs: number
  readonly seconds: number
}

/** A key alone may have so much of all places. */
const ownPart = 0.8
const most = { refusalMs: 50, recoveryMs: 5_000 }

export async function overload ({ maxActive, replyMs, seconds }: Options): Promise<Report> {
  const folder = temporaryFolder()
  const provider = await startProvider({ delayMs: () => replyMs })
  const { origin, kill } = await launchGateway(folder.path, {
    upstreams: { main: { url: provider.url, credential: 'provider-key' } },
    groups: { all: { protocols: ['chat_completions'] } },
    keys: [{ id: 'one', group: 'all', secret }],
    state: { engine: 'memory' },
    overload: { maxActive, maxLoopDelayMs: 0 },
  })
  const { call, close } = createCaller(maxActive * 6)
  const places = Math.floor(maxActive * ownPart)
  const violations: string[] = []
  let sent = 0
  const ask = async (): Promise<Answer> => await call(origin, { secret, tag: `n${sent++}` })
  await inParallel(places * 4, places, ask)

  const rounds = Math.max(2, Math.ceil(seconds * 1_000 / replyMs))
  const peakFrom = performance.now()
  const peak = await inParallel(places * rounds, places, ask)
  const peakRate = peak.length / (performance.now() - peakFrom)
  if (peak.some(({ status }) => status !== 200)) violations.push('a request was refused within the number that may run')

  const everyMs = replyMs / places / 3
  const asked: Array<Promise<Answer>> = []
  const from = performance.now()
  for (let at = 0; at < places * rounds * 3; at += 1) {
    const wait = from + at * everyMs - performance.now()
    if (wait > 0) await pause(wait)
    asked.push(ask())
  }
  const answers = await Promise.all(asked)
  const served = answers.filter(({ status }) => status === 200)
  const refused = answers.filter(({ status }) => status === 503)
  const goodput = served.length / (performance.now() - from) / peakRate
  if (served.length + refused.length < answers.length) {
    violations.push(`${answers.length - served.length - refused.length} were neither served nor refused`)
  }
  if (refused.length === 0) violations.push('nothing was refused')
  if (refused.some(
    ({ error, headers }) => JSON.parse(error).error.code !== 'overloaded' || !/^[123]$/.test(String(headers['retry-after']))
  )) {
    violations.push('a refusal without its words')
  }
  if (new Set(refused.map(({ headers }) => headers['retry-after'])).size < 2) violations.push('all refused are to come back together')
  if (provider.seen.size > sent - refused.length) violations.push('something refused was sent')

  const over = performance.now()
  const recovered = await inParallel(places * 2, Math.ceil(places / 2), ask)
  const recoveryMs = Math.round(performance.now() - over)
  if (recovered.some(({ status }) => status !== 200)) violations.push('it refuses when all is over')
  const metrics = await (await fetch(`${origin}/metrics`)).text()
  const counted = [...metrics.matchAll(/^llm_gateway_shed_total\{[^}]*\} (\d+)$/gm)].reduce((sum, [, value]) => sum + Number(value), 0)
  if (counted !== refused.length) violations.push(`${counted} counted as shed of ${refused.length}`)
  const refusalMs = quantile(refused.map(({ ms }) => ms), 0.99)
  const slow = [
    ...goodput < 0.9 ? [`${goodput} of the peak was served`] : [],
    ...refusalMs > most.refusalMs ? [`a refusal took ${refusalMs} ms`] : [],
    ...recoveryMs > most.recoveryMs ? [`it took ${recoveryMs} ms to recover`] : [],
  ]
  await close()
  await kill()
  await provider.close()
  folder.remove()
  return { violations, slow, asked: answers.length, served: served.length, refused: refused.length, goodput, refusalMs, recoveryMs }
}
