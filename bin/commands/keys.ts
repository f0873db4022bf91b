import { parseArgs } from 'node:util'
import type { GatewayConfig } from '../../plugins/standalone/config-types.js'
import { loadConfig, stateConfig } from '../../plugins/standalone/config.js'
import { issueKey, newKeyId, revokeKey, rotateKey } from '../../plugins/standalone/issued-keys.js'
import { openState, type KeyRecord, type KeyStore, type Limits } from '../../plugins/state/index.js'
import { readCount, readDate, Refusal, UsageError, type Io } from '../io.js'

const options = {
  config: { type: 'string' },
  group: { type: 'string' },
  id: { type: 'string' },
  label: { type: 'string' },
  expires: { type: 'string' },
  balance: { type: 'string' },
  'requests-per-minute': { type: 'string' },
  'tokens-per-minute': { type: 'string' },
  concurrency: { type: 'string' },
} as const

type Values = Partial<Record<keyof typeof options, string>>

interface Asked {
  readonly config: GatewayConfig
  readonly store: KeyStore
  readonly values: Values
  /** The key that the command line names. */
  readonly id: string
  readonly io: Io
}

const actions = new Map(Object.entries({ create, list, revoke, rotate }))

/** Issued keys: made, listed, ended, given another secret. What changes here reaches gateways that run. */
export async function keys (file: string, args: string[], io: Io): Promise<number> {
  const { values, positionals: [name = '', id = '', ...more] } = parseArgs({ args, options, allowPositionals: true })
  const action = actions.get(name)
  const wantsId = name === 'revoke' || name === 'rotate'
  if (action === undefined) throw new UsageError('keys takes create, list, revoke or rotate')
  if (wantsId !== (id !== '') || more.length > 0) throw new UsageError(wantsId ? `keys ${name} takes the id of one key` : `keys ${name} takes no id`)
  const config = loadConfig(file, io.env)
  const where = stateConfig(config)
  if (where.engine === 'memory') throw new Refusal('state.engine is memory: a gateway that runs would never see the key')
  const state = await openState(where)
  try {
    await action({ config, store: state.keys, values, id, io })
  } finally {
    await state.close()
  }
  return 0
}

async function create ({ config, store, values, io }: Asked): Promise<void> {
  const { group, id = newKeyId(), label = null } = values
  if (group === undefined) throw new UsageError('keys create needs --group')
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(id)) throw new UsageError('--id must be up to 64 letters, digits, dots, dashes and underscores')
  const expiresAt = readDate('--expires', values.expires)
  const limits = readLimits(values)
  if (!Object.hasOwn(config.groups, group)) throw new Refusal(`there is no group ${group}`)
  const inFile = config.keys?.some((key) => key.id === id) === true
  const secret = inFile ? null : await issueKey(store, id, { group, expiresAt, limits, label })
  if (secret === null) throw new Refusal(`there is a key ${id} already`)
  io.err(`key ${id} of group ${group}; its secret is not shown again:`)
  io.out(secret)
}

function readLimits (values: Values): Limits {
  const given = {
    requestsPerMinute: readCount('--requests-per-minute', values['requests-per-minute'], 1),
    tokensPerMinute: readCount('--tokens-per-minute', values['tokens-per-minute'], 1),
    concurrency: readCount('--concurrency', values.concurrency, 1),
    balance: readCount('--balance', values.balance, 0),
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}

async function list ({ store, io }: Asked): Promise<void> {
  for await (const key of store.list()) io.out(JSON.stringify(shown(key)))
}

/** Without the digest: it is no secret, and nobody needs it. */
function shown ({ id, group, label, disabled, expiresAt, createdAt, limits }: KeyRecord): Record<string, unknown> {
  const time = (value: number | null): string | null => value === null ? null : new Date(value).toISOString()
  const state = disabled ? 'revoked' : expiresAt !== null && expiresAt <= Date.now() ? 'expired' : 'active'
  return { id, group, label, state, expires: time(expiresAt), created: time(createdAt), limits }
}

async function revoke ({ store, id, io }: Asked): Promise<void> {
  if (!await revokeKey(store, id)) throw new Refusal(`there is no key ${id}`)
  io.err(`key ${id} is revoked`)
}

async function rotate ({ store, id, io }: Asked): Promise<void> {
  const secret = await rotateKey(store, id)
  if (secret === null) throw new Refusal(`there is no key ${id}`)
  io.err(`key ${id} has another secret, which is not shown again:`)
  io.out(secret)
}
