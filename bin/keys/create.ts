import { createKey, newKeyId, rotateKey, type Issued } from '../../plugins/standalone/issued-keys.js'
import { readArgs } from '../args.js'
import { CommandError, UsageError, type Io } from '../io.js'
import { common, expiryAfter, keyOptions, labelsAfter, limitsAfter } from './options.js'
import { keyLine, stateOf } from './show.js'
import { checkPriced, onlyId, orRefuse, withStore } from './store.js'

export async function create (file: string, args: string[], io: Io): Promise<void> {
  const { values } = readArgs({ args, options: { ...common, ...keyOptions, id: { type: 'string' } } })
  const { group, id = newKeyId(), json } = values
  if (group === undefined) throw new UsageError('keys create needs --group')
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(id)) {
    throw new UsageError('--id must be up to 64 letters, digits, dots, dashes and underscores')
  }
  const key = { group, expiresAt: expiryAfter(null, values), limits: limitsAfter({}, values), label: labelsAfter(null, values) }
  await withStore(file, io, async (store, config) => {
    checkPriced(key.limits, config)
    const inFile = config.keys?.some((other) => other.id === id) === true
    const issued = inFile ? null : await createKey(store, id, key)
    if (issued === null) throw new CommandError(`there is a key ${id} already`)
    const expired = stateOf(issued.key) === 'active' ? '' : ', and it has expired already'
    tell(issued, `key ${id} of group ${group}; its secret is not shown again${expired}:`, json, io)
  }, group)
}

export async function rotate (file: string, args: string[], io: Io): Promise<void> {
  const { values: { json }, positionals } = readArgs({ args, options: common, allowPositionals: true })
  const id = onlyId('rotate', positionals)
  await withStore(file, io, async (store, config) => {
    const issued = orRefuse(await rotateKey(store, id), id, config)
    const state = stateOf(issued.key)
    const still = state === 'active' ? '' : `, and is still ${state}`
    tell(issued, `key ${id} has another secret, which is not shown again${still}:`, json, io)
  })
}

/** Only the secret goes to the standard output, so that scripts can capture it. */
function tell ({ key, secret }: Issued, words: string, json: boolean, io: Io): void {
  if (json) {
    io.out(keyLine(key, { secret }))
    return
  }
  io.err(words)
  io.out(secret)
}
