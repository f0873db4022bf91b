import { stateText, type PoolStatus, type UpstreamsStatus } from '../../plugins/core/upstream/upstream-status.js'
import { loadConfig } from '../../plugins/standalone/config.js'
import { listenAddress } from '../../plugins/standalone/config-values.js'
import { originOf } from '../../plugins/standalone/curls.js'
import { configOption, readArgs } from '../args.js'
import { CommandError, UsageError, type Io } from '../io.js'
import { table } from '../table.js'

const options = {
  ...configOption,
  url: { type: 'string' },
  json: { type: 'boolean', default: false },
} as const

const timeoutMs = 10_000

const columns = [
  { title: 'upstream' }, { title: 'pools' }, { title: 'account' }, { title: 'state' }, { title: 'model' },
  { title: 'running', numeric: true }, { title: 'returns in', numeric: true },
]

/** Shows the state of the upstreams of a running gateway, read from its console. */
export async function upstreams (file: string, args: string[], io: Io): Promise<number> {
  const { values } = readArgs({ args, options })
  if (values.url !== undefined && !/^https?:[/][/]./.test(values.url)) {
    throw new UsageError('--url must be an address such as http://127.0.0.1:9091')
  }
  const base = values.url ?? consoleUrl(file, io)
  const status = await ask(`${base.replace(/\/+$/, '')}/upstreams`)
  if (values.json) await io.out(JSON.stringify(status))
  else for (const line of table(columns, rowsOf(status))) await io.out(line)
  return 0
}

/** Address of the configuration's console. Throws CommandError if it has none, or if its address is unknown. */
function consoleUrl (file: string, io: Io): string {
  const config = loadConfig(file, io.env)
  const { listen, path } = config.console ?? {}
  if (listen !== undefined && listen.port > 0) return originOf({ host: '127.0.0.1', ...listen })
  const address = listenAddress(config, io.env)
  if (path !== undefined && address.port > 0) return originOf(address) + path
  throw new CommandError('the configuration has no console to ask: set console.listen, or give --url')
}

async function ask (url: string): Promise<UpstreamsStatus> {
  let response: Response
  try {
    response = await fetch(url, { signal: AbortSignal.timeout(timeoutMs), redirect: 'error' })
  } catch {
    throw new CommandError(`no answer from ${url}: is the gateway running?`)
  }
  const given: unknown = response.ok ? await response.json().catch(() => null) : null
  if (!isStatus(given)) throw new CommandError(`${url} is not the console of a gateway: it answered ${response.status}`)
  return given
}

function isStatus (given: unknown): given is UpstreamsStatus {
  const { upstreams, pools } = Object(given)
  return Array.isArray(upstreams) && Array.isArray(pools)
}

function rowsOf ({ upstreams: all, pools, workers }: UpstreamsStatus): string[][] {
  return all.flatMap(({ models, ...upstream }) => [
    [
      upstream.name, poolsOf(upstream.name, pools), upstream.account, stateText(upstream, workers), '', String(upstream.active),
      time(upstream.returnsInMs),
    ],
    ...models.map(({ model, reason, returnsInMs }) => [upstream.name, '', '', reason, model, '', time(returnsInMs)]),
  ])
}

/** Each with the tier that the upstream has in it. */
function poolsOf (name: string, pools: readonly PoolStatus[]): string {
  const at = pools.flatMap(({ name: pool, members }) => members.filter(({ upstream }) => upstream === name)
    .map(({ tier }) => tier === 1 ? pool : `${pool} (tier ${tier})`))
  return at.length === 0 ? '-' : at.join(', ')
}

function time (ms: number): string {
  return ms === 0 ? '' : `${Math.ceil(ms / 1_000)} s`
}
