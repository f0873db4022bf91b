import { checkOptions, OptionError, withDefaults } from '../../core/config/options.js'
import { readPassword, type Password, type PasswordFile } from '../password.js'

/** A PostgreSQL that has the usage of all hosts. */
export interface UsageStoreConfig {
  /** `postgres://user:password@host:port/database`, followed by other parameters of libpq, such as `sslmode`. */
  readonly url: string
  /**
   * File with the password, in place of the one in `url`. Read again for each connection.
   * @defaultValue none
   */
  readonly password?: PasswordFile
  /**
   * The PostgreSQL schema that holds its tables; created if it is missing.
   * @defaultValue `llm_gateway`
   */
  readonly schema?: string
  /**
   * How often new records are shipped, in milliseconds.
   * @defaultValue 1,000
   */
  readonly intervalMs?: number
  /**
   * How long a statement may take, in milliseconds.
   * @defaultValue 30,000
   */
  readonly timeoutMs?: number
  /**
   * Months are dropped when their last record is older than this, in milliseconds; sums stay.
   * @defaultValue never
   */
  readonly keepMs?: number
}

export interface UsageStoreRules extends Required<Omit<UsageStoreConfig, 'password'>> {
  readonly password: Password | null
}

const defaults = { schema: 'llm_gateway', intervalMs: 1_000, timeoutMs: 30_000, keepMs: Infinity }

/** Throws `LLM_GATEWAY_OPTION` naming the wrong option. */
export function readUsageStore (config: UsageStoreConfig): UsageStoreRules {
  checkOptions('state.usageStore', config, {
    'a string': ['url', 'schema'],
    'an object': ['password'],
    'a whole number of 1 to 2147483647': ['intervalMs', 'timeoutMs'],
    'a whole number of at least 1': ['keepMs'],
  })
  const { url } = config
  const rules = withDefaults(defaults, config)
  if (!/^postgres(?:ql)?:\/\/./.test(String(url))) throw new OptionError('state.usageStore.url', 'must begin with postgres://')
  // It is put into statements as it is.
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(rules.schema)) {
    throw new OptionError('state.usageStore.schema', 'must be a name of lower-case letters, digits and underscores')
  }
  return { ...rules, url, password: readPassword('state.usageStore.password', config.password) }
}
