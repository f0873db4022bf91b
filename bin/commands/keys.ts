import { didYouMean } from '../../plugins/core/config/did-you-mean.js'
import { UsageError, type Io } from '../io.js'
import { create, rotate } from '../keys/create.js'
import { list } from '../keys/list.js'
import { revoke, update } from '../keys/update.js'

type Action = (file: string, args: string[], io: Io) => Promise<void>

const actions = new Map(Object.entries<Action>({ create, list, update, rotate, revoke }))

/** Issued keys: create, list, change, rotate, revoke. Changes reach running gateways. */
export async function keys (file: string, [name = '', ...args]: string[], io: Io): Promise<number> {
  const action = actions.get(name)
  if (action === undefined) throw new UsageError(`keys takes ${[...actions.keys()].join(', ')}${didYouMean(name, [...actions.keys()])}`)
  await action(file, args, io)
  return 0
}
