/** Checks of where the state is kept. */
import { checkOptions, OptionError } from '../core/config/options.js'
import { readPassword, type PasswordFile } from './password.js'
import type { StateConfig } from './types.js'
import { readUsageStore } from './usage-store/options.js'

const stateChecks = {
  anything: ['engine'],
  'a string': ['path', 'url', 'prefix'],
  'an object': ['password', 'sentinel', 'ledger', 'usageStore'],
  'a boolean': ['cluster'],
  'a whole number of 1 to 2147483647': ['commandTimeoutMs', 'holdTtlMs'],
}

const ledgerChecks = { 'a whole number of at least 1': ['maxFileBytes', 'maxFileAgeMs', 'keepMs'] }

const engines: readonly string[] = ['memory', 'lmdb', 'redis']
const redisOnly = ['url', 'password', 'cluster', 'sentinel', 'prefix', 'commandTimeoutMs']

/** Throws `LLM_GATEWAY_OPTION` for the first wrong option. */
export function checkState (config: StateConfig): void {
  // The names are checked, too: with a misspelled `path` the state would be kept in another place.
  checkOptions('state', config, stateChecks)
  const { engine, ledger = {}, usageStore } = config
  checkOptions('state.ledger', ledger, ledgerChecks)
  if (usageStore !== undefined) {
    readUsageStore(usageStore)
    if (engine === 'memory') throw new OptionError('state.usageStore', 'needs an engine that keeps records on the disk: lmdb or redis')
  }
  if (!engines.includes(engine)) throw new OptionError('state.engine', 'must be memory, lmdb or redis')
  const unread = engine === 'redis' ? undefined : redisOnly.find((name) => Reflect.get(config, name) !== undefined)
  if (unread !== undefined) throw new OptionError(`state.${unread}`, 'belongs to the engine redis')
  checkSentinel(config)
  const [unusable] = wrongLogins(config)
  if (unusable !== undefined) throw unusable
}

function checkSentinel ({ sentinel, cluster }: StateConfig): void {
  if (sentinel === undefined) return
  checkOptions('state.sentinel', sentinel, { 'a string': ['name'], 'an object': ['password'] })
  if (sentinel.name === undefined) throw new OptionError('state.sentinel.name', 'is required')
  if (cluster === true) throw new OptionError('state.sentinel', 'has no place beside cluster')
}

interface Login {
  readonly url?: string | undefined
  readonly password?: PasswordFile
}

interface Logins extends Login {
  readonly sentinel?: Login
  readonly usageStore?: Login
}

/** `LLM_GATEWAY_OPTION` errors, one for each address and password that cannot be used. */
export function wrongLogins ({ sentinel, usageStore, ...state }: Logins): unknown[] {
  const all = Object.entries<Login | undefined>({ state, 'state.sentinel': sentinel, 'state.usageStore': usageStore })
  return all.flatMap(([option, given]) => [
    ...given?.url === undefined ? [] : thrownBy(() => checkAddress(`${option}.url`, String(given.url))),
    ...thrownBy(() => readPassword(`${option}.password`, given?.password)),
  ])
}

function thrownBy (check: () => unknown): unknown[] {
  try {
    check()
    return []
  } catch (error) {
    return [error]
  }
}

/** Checked here, because the client's own error names neither the option nor what is wrong. */
function checkAddress (option: string, address: string): void {
  try {
    // The address of a PostgreSQL socket has no host. The PostgreSQL client accepts a percent sign that stands for itself.
    const { username, password, protocol } = new URL(address.replace('@/', '@socket/'))
    if (protocol.startsWith('redis')) decodeURIComponent(username + password)
  } catch {
    throw new OptionError(option, 'cannot be read: in a name or password, all but letters and digits is percent-encoded, such as # as %23')
  }
}
