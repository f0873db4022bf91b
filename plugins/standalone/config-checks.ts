/** What a schema cannot say: names that must exist, values that exclude each other, addresses and dates that must parse. */
import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import type { KeyOptions } from '../auth/index.js'
import { groupMistakes } from '../upstreams/check-groups.js'
import { addressProblem } from '../core/url/upstream-address.js'
import { joinPath, type Problem } from './config-error.js'
import type { GatewayConfig, UpstreamEntry } from './config-types.js'

/** Every such mistake of a configuration whose form is right. */
export function crossCheck (config: GatewayConfig): Problem[] {
  const upstreams = Object.entries(config.upstreams).flatMap(([name, upstream]) => checkUpstream(`upstreams.${name}`, upstream))
  const groups = groupMistakes({ ...config, pools: config.pools ?? {}, upstreams: Object.fromEntries(Object.entries(config.upstreams).map(([name, entry]) => [name, entry.simulate ? {} : entry])), complete: true })
  const keys = (config.keys ?? []).flatMap((key, index) => checkKey(`keys[${index}]`, key, config))
  return [...upstreams, ...groups, ...keys, ...checkUnique(config.keys ?? []), ...checkIncludeUsage(config), ...checkPaths(config), ...checkUsageStore(config), ...checkProxies(config), ...checkWorkers(config)]
}

function checkIncludeUsage ({ usage, upstreams }: GatewayConfig): Problem[] {
  const names = typeof usage?.includeUsage === 'object' ? Object.keys(usage.includeUsage) : []
  return names.filter((name) => !Object.hasOwn(upstreams, name))
    .map((name) => ({ path: joinPath('usage.includeUsage', name), message: `there is no upstream ${name}` }))
}

/** Records of memory are gone with the process. */
function checkUsageStore ({ state }: GatewayConfig): Problem[] {
  const isLost = state?.engine === 'memory' && state.usageStore !== undefined
  return isLost ? [{ path: 'state.usageStore', message: 'needs an engine that keeps records on the disk: lmdb or redis' }] : []
}

/** Each worker would count for itself, and a key would have its limits as many times. */
function checkWorkers ({ listen: { workers = 1 } = {}, state }: GatewayConfig): Problem[] {
  const isShared = workers === 1 || state?.engine !== 'memory'
  return isShared ? [] : [{ path: 'state.engine', message: 'must be lmdb or redis with listen.workers: memory is of one process alone' }]
}

const proxyNames = ['loopback', 'linklocal', 'uniquelocal']

/** One that cannot be read would fail the start without naming the field. */
function checkProxies ({ listen: { trustProxy = [] } = {} }: GatewayConfig): Problem[] {
  return trustProxy.flatMap((proxy, index) => {
    const [address = '', bits, ...more] = proxy.split('/')
    const most = isIP(address) === 6 ? 128 : 32
    const known = proxyNames.includes(proxy) || (isIP(address) > 0 && more.length === 0 && (bits === undefined || (/^[0-9]{1,3}$/.test(bits) && Number(bits) <= most)))
    return known ? [] : [{ path: `listen.trustProxy[${index}]`, message: `must be an address, a network such as 10.0.0.0/8, or one of ${proxyNames.join(', ')}` }]
  })
}

/** Two routes cannot stand at one path; the router would say so without naming the field. */
function checkPaths ({ metrics: { path: metrics = '/metrics' } = {}, console: { path: console = '' } = {} }: GatewayConfig): Problem[] {
  const own = ['/', '/health']
  return [
    ...own.includes(metrics) ? [{ path: 'metrics.path', message: `${metrics} is a path of the gateway's own` }] : [],
    ...[...own, metrics].includes(console) ? [{ path: 'console.path', message: `${console} is the path of something else` }] : [],
  ]
}

function checkUpstream (path: string, upstream: UpstreamEntry): Problem[] {
  if (upstream.simulate) return []
  const problem = addressProblem(upstream.url)
  return problem === null ? [] : [{ path: `${path}.url`, message: problem }]
}

function checkKey (path: string, key: KeyOptions, config: GatewayConfig): Problem[] {
  const problems: Problem[] = []
  if (!Object.hasOwn(config.groups, key.group)) problems.push({ path: `${path}.group`, message: `there is no group ${key.group}` })
  if (key.secret === undefined && key.hash === undefined) problems.push({ path: `${path}.secret`, message: 'is required, or a hash' })
  if (key.secret !== undefined && key.hash !== undefined) problems.push({ path: `${path}.hash`, message: 'has no place beside secret' })
  if (key.expires !== undefined && Number.isNaN(Date.parse(key.expires))) problems.push({ path: `${path}.expires`, message: 'is not a date that exists' })
  return problems
}

function checkUnique (keys: readonly KeyOptions[]): Problem[] {
  const ids = keys.map((key) => key.id)
  const hashes = keys.map((key) => (key.secret === undefined ? key.hash : hashOf(key.secret)))
  const repeated = (values: ReadonlyArray<string | undefined>, message: string): Problem[] => {
    const seen = new Set<string | undefined>()
    return values.flatMap((value, index) => {
      const isNew = value === undefined || !seen.has(value)
      seen.add(value)
      return isNew ? [] : [{ path: `keys[${index}]`, message }]
    })
  }
  return [...repeated(ids, 'has the id of another key'), ...repeated(hashes, 'has the secret of another key')]
}

function hashOf (secret: string): string {
  return `sha256:${createHash('sha256').update(secret).digest('hex')}`
}
