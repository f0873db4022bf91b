import type { KeyRecord } from '../../plugins/state/types.js'
import { readArgs } from '../args.js'
import type { Io } from '../io.js'
import { common } from './options.js'
import { keyLine, keyTable } from './show.js'
import { checkGroup, withStore } from './store.js'

/** `--json`: a line per key, as they are read. Otherwise a table in the order of the ids. */
export async function list (file: string, args: string[], io: Io): Promise<void> {
  const { values: { json, group } } = readArgs({ args, options: { ...common, group: { type: 'string' } } })
  const keys: KeyRecord[] = []
  let isEmpty = true
  await withStore(file, io, async (store, config) => {
    for await (const key of store.list()) {
      if (group !== undefined && key.group !== group) continue
      isEmpty = false
      if (json) await io.out(keyLine(key))
      else keys.push(Object.hasOwn(config.groups, key.group) ? key : { ...key, group: `${key.group} (unknown)` })
    }
    // A group that was removed from the configuration may still have keys.
    if (isEmpty && group !== undefined) checkGroup(group, config)
  })
  if (isEmpty) io.err(`no key${group === undefined ? '' : ` of group ${group}`} is issued; keys of the configuration are not listed`)
  if (json) return
  keys.sort((a, b) => Number(a.id > b.id) - Number(a.id < b.id))
  for (const line of keyTable(keys)) await io.out(line)
}
