import { parseArgs } from 'node:util'
import type { KeyRecord } from '../../plugins/state/types.js'
import type { Io } from '../io.js'
import { common } from './options.js'
import { keyLine, keyTable } from './show.js'
import { withStore } from './store.js'

/** `--json`: a line a key, as they come. Else a table in the order of the ids. */
export async function list (file: string, args: string[], io: Io): Promise<void> {
  const { values: { json, group } } = parseArgs({ args, options: { ...common, group: { type: 'string' } } })
  const keys: KeyRecord[] = []
  await withStore(file, io, async (store) => {
    for await (const key of store.list()) {
      if (group !== undefined && key.group !== group) continue
      if (json) await io.out(keyLine(key))
      else keys.push(key)
    }
  })
  if (json) return
  keys.sort((a, b) => Number(a.id > b.id) - Number(a.id < b.id))
  for (const line of keyTable(keys)) await io.out(line)
}
