import { readArgs } from '../args.js'
import { UsageError, type Io } from '../io.js'
import { editOf, switches } from './edit.js'
import { common, keyOptions } from './options.js'
import { keyLine } from './show.js'
import { checkPriced, keyOf, onlyId, orRefuse, withStore } from './store.js'

/** Changes the named fields of a key, and no others. */
export async function update (file: string, args: string[], io: Io): Promise<void> {
  const { values, positionals } = readArgs({ args, options: { ...common, ...keyOptions, ...switches }, allowPositionals: true })
  const { group, enable, disable, json } = values
  const id = onlyId('update', positionals)
  if (enable && disable) throw new UsageError('--enable and --disable exclude each other')
  await withStore(file, io, async (store, config) => {
    const before = await keyOf(store, id, config)
    const edit = editOf(before, values)
    if (values.budget !== undefined) checkPriced({ ...before, ...edit }.limits, config)
    const isSame = Object.keys(edit).length === 0
    const key = isSame ? before : orRefuse(await store.update(id, (now) => editOf(now, values)), id, config)
    if (json) io.out(keyLine(key))
    else io.err(`key ${id} ${isSame ? 'is as it was' : 'is changed'}`)
  }, group)
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
