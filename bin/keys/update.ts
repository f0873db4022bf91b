import { isDeepStrictEqual } from 'node:util'
import type { KeyRecord } from '../../plugins/state/types.js'
import { readArgs } from '../args.js'
import { UsageError, type Io } from '../io.js'
import { common, expiryAfter, keyOptions, labelsAfter, limitsAfter, type KeyValues } from './options.js'
import { keyLine } from './show.js'
import { checkGroup, checkPriced, keyOf, onlyId, orRefuse, withStore } from './store.js'

const switches = { enable: { type: 'boolean', default: false }, disable: { type: 'boolean', default: false } } as const

/** Changes what is named of a key, and nothing else of it. */
export async function update (file: string, args: string[], io: Io): Promise<void> {
  const { values, positionals } = readArgs({ args, options: { ...common, ...keyOptions, ...switches }, allowPositionals: true })
  const { group, enable, disable, json } = values
  const id = onlyId('update', positionals)
  if (enable && disable) throw new UsageError('--enable and --disable exclude each other')
  await withStore(file, io, async (store, config) => {
    if (group !== undefined) checkGroup(group, config)
    const before = await keyOf(store, id, config)
    const after = { ...detailsAfter(before, values), disabled: disable || (before.disabled && !enable) }
    if (values.budget !== undefined) checkPriced(after.limits, config)
    const isSame = isDeepStrictEqual({ ...before, ...after }, before)
    const key = isSame ? before : orRefuse(await store.update(id, after), id, config)
    if (json) io.out(keyLine(key))
    else io.err(`key ${id} ${isSame ? 'is as it was' : 'is changed'}`)
  })
}

function detailsAfter (before: KeyRecord, values: KeyValues): Pick<KeyRecord, 'group' | 'expiresAt' | 'limits' | 'label'> {
  return {
    group: values.group ?? before.group,
    expiresAt: expiryAfter(before.expiresAt, values),
    limits: limitsAfter(before.limits, values),
    label: labelsAfter(before.label, values),
  }
}

export async function revoke (file: string, args: string[], io: Io): Promise<void> {
  const { values: { json }, positionals } = readArgs({ args, options: common, allowPositionals: true })
  const id = onlyId('revoke', positionals)
  await withStore(file, io, async (store, config) => {
    const key = orRefuse(await store.update(id, { disabled: true }), id, config)
    if (json) io.out(keyLine(key))
    else io.err(`key ${id} is revoked`)
  })
}
