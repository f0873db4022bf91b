/** Checks that a schema cannot express: names that must exist, values that exclude each other, addresses and dates that must parse. */
import { isIP } from 'node:net'
import type { KeyOptions } from '../auth/index.js'
import { digestOf } from '../auth/keys.js'
import { groupMistakes } from '../upstreams/check-groups.js'
import { didYouMean } from '../core/config/did-you-mean.js'
import { readTime } from '../core/config/read-time.js'
import { addressProblem } from '../core/url/upstream-address.js'
import { joinPath } from '../core/config/join-path.js'
import type { Problem } from './config-error.js'
import type { GatewayConfig, UpstreamEntry } from './config-types.js'

type Section = keyof GatewayConfig

interface Rule {
  /** The sections that it reads. */
  readonly of: readonly Section[]
  readonly check: (config: GatewayConfig) => Problem[]
}

const rules: readonly Rule[] = [
  {
    of: ['upstreams'],
    check: ({ upstreams }) => Object.entries(upstreams).flatMap(([name, upstream]) => checkUpstream(`upstreams.${name}`, upstream)),
  },
  { of: ['upstreams', 'pools', 'groups'], check: checkGroups },
  { of: ['keys', 'groups'], check: ({ keys = [], groups }) => keys.flatMap((key, index) => checkGroup(`keys[${index}]`, key, groups)) },
  { of: ['keys'], check: ({ keys = [] }) => [...keys.flatMap((key, index) => checkKey(`keys[${index}]`, key)), ...checkUnique(keys)] },
  { of: ['usage', 'upstreams'], check: checkIncludeUsage },
  { of: ['metrics', 'console'], check: checkPaths },
  { of: ['state'], check: checkUsageStore },
  { of: ['listen'], check: checkProxies },
  { of: ['listen'], check: ({ listen }) => checkHost('listen.host', listen?.host) },
  { of: ['listen', 'state'], check: checkWorkers },
  { of: ['listen', 'console'], check: checkPorts },
  { of: ['console'], check: checkConsole },
  { of: ['console'], check: ({ console }) => checkHost('console.listen.host', console?.listen?.host) },
]

/** All such mistakes of a configuration. Checks that read a section whose form is wrong (`wrong`) are skipped. */
export function crossCheck (config: GatewayConfig, wrong: ReadonlySet<string>): Problem[] {
  return rules.filter((rule) => !rule.of.some((section) => wrong.has(section))).flatMap((rule) => rule.check(config))
}

function checkGroups ({ upstreams, pools = {}, groups }: GatewayConfig): Problem[] {
  const named = Object.fromEntries(Object.entries(upstreams).map(([name, entry]) => [name, entry.simulate ? {} : entry]))
  return groupMistakes({ groups, pools, upstreams: named, complete: true })
}

function checkIncludeUsage ({ usage, upstreams }: GatewayConfig): Problem[] {
  const names = typeof usage?.includeUsage === 'object' ? Object.keys(usage.includeUsage) : []
  return names.filter((name) => !Object.hasOwn(upstreams, name))
    .map((name) => ({
      path: joinPath('usage.includeUsage', name), message: `there is no upstream ${name}${didYouMean(name, Object.keys(upstreams))}`,
    }))
}

/** The system would look such a name up, and not say which field it means. */
function checkHost (path: string, host = ''): Problem[] {
  const isAlone = isIP(host) !== 0 || /^[^\s:/[\]]*$/.test(host)
  return isAlone ? [] : [{ path, message: 'must be an address or a name alone, without a scheme, a port and brackets' }]
}

/** The system's own error would not say which address it means. Port 0 is any free one. */
function checkPorts ({ listen = {}, console: { listen: own } = {} }: GatewayConfig): Problem[] {
  const { host = '127.0.0.1', port = 8080 } = listen
  if (own === undefined || port === 0 || own.port !== port) return []
  const { host: ownHost = '127.0.0.1' } = own
  const meet = host === ownHost || [host, ownHost].some((name) => name === '0.0.0.0' || name === '::')
  return meet ? [{ path: 'console.listen.port', message: `${port} is the port that the gateway itself listens on` }] : []
}

/** Records in memory are lost with the process. */
function checkUsageStore ({ state }: GatewayConfig): Problem[] {
  const isLost = state?.engine === 'memory' && state.usageStore !== undefined
  return isLost ? [{ path: 'state.usageStore', message: 'needs an engine that keeps records on the disk: lmdb or redis' }] : []
}

/** Each worker would count for itself, so that a key had its limits once per worker. */
function checkWorkers ({ listen: { workers = 1 } = {}, state }: GatewayConfig): Problem[] {
  const isShared = workers === 1 || state?.engine !== 'memory'
  return isShared ? [] : [{ path: 'state.engine', message: 'must be lmdb or redis with listen.workers: memory is of one process alone' }]
}

const proxyNames = ['loopback', 'linklocal', 'uniquelocal']

/** An address that cannot be read would fail the start without naming the field. */
function checkProxies ({ listen: { trustProxy = [] } = {} }: GatewayConfig): Problem[] {
  return trustProxy.flatMap((proxy, index) => {
    const [address = '', bits, ...more] = proxy.split('/')
    const most = isIP(address) === 6 ? 128 : 32
    const known = proxyNames.includes(proxy) ||
      (isIP(address) > 0 && more.length === 0 && (bits === undefined || (/^[0-9]{1,3}$/.test(bits) && Number(bits) >= 1 && Number(bits) <= most)))
    return known
      ? []
      : [{
          path: `listen.trustProxy[${index}]`,
          message: `must be an address, a network such as 10.0.0.0/8, or one of ${proxyNames.join(', ')}`,
        }]
  })
}

function checkConsole ({ console }: GatewayConfig): Problem[] {
  if (console === undefined || console.path !== undefined || console.listen !== undefined) return []
  return [{ path: 'console', message: 'needs a path or listen.port' }]
}

/** Two routes cannot have the same path; the router's error would not name the field. */
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

function checkGroup (path: string, { group }: KeyOptions, groups: GatewayConfig['groups']): Problem[] {
  if (Object.hasOwn(groups, group)) return []
  return [{ path: `${path}.group`, message: `there is no group ${group}${didYouMean(group, Object.keys(groups))}` }]
}

function checkKey (path: string, key: KeyOptions): Problem[] {
  const problems: Problem[] = []
  if (key.secret === undefined && key.hash === undefined) problems.push({ path: `${path}.secret`, message: 'is required, or a hash' })
  if (key.secret !== undefined && key.hash !== undefined) problems.push({ path: `${path}.hash`, message: 'has no place beside secret' })
  if (key.expires !== undefined && Number.isNaN(readTime(key.expires))) {
    problems.push({ path: `${path}.expires`, message: 'is not a date that exists' })
  }
  return problems
}

function checkUnique (keys: readonly KeyOptions[]): Problem[] {
  const ids = keys.map((key) => key.id)
  const hashes = keys.map((key) => (key.secret === undefined ? key.hash : `sha256:${digestOf(key.secret)}`))
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
