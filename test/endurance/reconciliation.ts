/** The ledger and `tokens_total` count the same tokens, whatever becomes of the replies. */
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { protocolNames } from '../../plugins/protocols/index.js'
import { leaves } from '../../plugins/core/call/measures.js'
import { secret, read } from '../helpers/gateway.js'
import { startUpstream, type Script } from '../helpers/upstream.js'
import { samplesOf } from '../metrics/meters.js'
import { send } from '../metrics/traffic.js'
import { inParallel } from './caller.js'
import { eventually, launchGateway, ledgerIn, residentMb, sum, temporaryFolder, type Report } from './processes.js'

/** What a provider does, in turn: mostly its work, now and then half of it, or none. */
const manners: ReadonlyArray<Script | null> = [
  null, { split: 'events' }, null, { split: 'events', cutAt: 300 }, null, { status: 503, body: { error: { message: 'overloaded' } } },
  { split: 'bytes' }, { cutAt: 'headers' },
]

interface Traffic {
  readonly requests: number
  readonly atOnce: number
  /** Begun in a second; as fast as it goes where it is not said. */
  readonly perSecond?: number
  /** None is begun after it. */
  readonly forMs?: number
}

export async function reconciliation ({ requests, atOnce, perSecond = Infinity, forMs = Infinity }: Traffic): Promise<Report> {
  const folder = temporaryFolder()
  const upstream = await startUpstream()
  let count = 0
  upstream.respond = () => {
    count += 1
    return manners[count % manners.length]
  }
  const gateway = await launchGateway(folder.path, {
    upstreams: { main: { url: upstream.url, credential: 'provider-key' } },
    groups: { all: { protocols: protocolNames, limits: { balance: 1e12, concurrency: 10_000 } } },
    keys: [{ id: 'one', group: 'all', secret }],
    state: { engine: 'lmdb', path: './data' },
    metrics: { path: '/metrics' },
  })
  const endings = { whole: 0, cut: 0, left: 0, refused: 0 }
  const startedAt = performance.now()
  let settledMb = 0
  let begun = 0
  await inParallel(requests, atOnce, async (i) => {
    await pause(startedAt + 1_000 * i / perSecond - performance.now())
    const sinceMs = performance.now() - startedAt
    if (sinceMs > forMs) return
    begun += 1
    if (settledMb === 0 && (i >= requests / 5 || sinceMs > forMs / 5)) settledMb = residentMb(gateway.pid)
    const { request, reply } = send(gateway.origin, protocolNames[i % protocolNames.length] ?? 'messages', i % 3 !== 0)
    const message = await reply
    if (i % 5 === 4) {
      // A caller that leaves after the first bytes.
      await Promise.race([once(message, 'data'), once(message, 'close')])
      request.destroy()
      endings.left += 1
      return
    }
    const { cut } = await read(message)
    endings[cut ? 'cut' : message.statusCode === 200 ? 'whole' : 'refused'] += 1
  })
  const metrics = async (): Promise<Map<string, number>> => samplesOf(await (await fetch(`${gateway.origin}/metrics`)).text())
  const quiet = await eventually(async () => {
    const samples = [...await metrics()]
    const done = sum(samples.filter(([name]) => name.startsWith('llm_gateway_requests_total{')).map(([, value]) => value))
    return done === begun
  })
  const counted = new Map<string, number>()
  for (const [name, value] of await metrics()) {
    const found = /^llm_gateway_tokens_total\{protocol="(\w+)",group="(\w+)",model="([^"]*)",direction="\w+",type="(\w+)"\}$/.exec(name)
    if (found !== null && value > 0) counted.set(found.slice(1).join(' '), value)
  }
  const minutes = (performance.now() - startedAt) * 4 / 5 / 60_000
  const grownMb = residentMb(gateway.pid) - settledMb
  await gateway.kill('SIGTERM')
  const { records, damaged } = await ledgerIn(join(folder.path, 'data', 'ledger'))
  const kept = new Map<string, number>()
  for (const record of records) {
    for (const { type } of leaves) {
      const name = [record.protocol, record.group, record.model, type].join(' ')
      if (record[type] > 0) kept.set(name, (kept.get(name) ?? 0) + record[type])
    }
  }
  const violations = [...new Set([...counted.keys(), ...kept.keys()])].filter((name) => counted.get(name) !== kept.get(name))
    .map((name) => `${name}: counted ${counted.get(name)}, in the ledger ${kept.get(name)}`)
  if (!quiet) violations.push('requests are missing in the metrics')
  if (damaged > 0) violations.push(`${damaged} lines are damaged`)
  // A few minutes tell nothing of memory: a heap grows to its usual size first.
  if (minutes > 8 && grownMb > minutes / 10 + 8) violations.push(`memory grew by ${grownMb} MB in ${Math.round(minutes)} minutes`)
  await upstream.close()
  folder.remove()
  const figures = { grownMb, requests: begun, records: records.length, series: counted.size, tokens: sum(counted.values()) }
  return { violations, slow: [], ...figures, ...endings }
}
