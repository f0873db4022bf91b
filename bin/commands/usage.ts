import { parseArgs } from 'node:util'
import { loadConfig, stateConfig } from '../../plugins/standalone/config.js'
import { openState } from '../../plugins/state/index.js'
import { readDate, Refusal, type Io } from '../io.js'

const options = { config: { type: 'string' }, from: { type: 'string' }, to: { type: 'string' } } as const

/** The usage ledger as JSON lines, in the order in which each process wrote it. Progress goes to stderr. */
export async function usage (file: string, args: string[], io: Io): Promise<number> {
  const { values } = parseArgs({ args, options })
  const from = readDate('--from', values.from) ?? -Infinity
  const to = readDate('--to', values.to) ?? Infinity
  const config = loadConfig(file, io.env)
  const where = stateConfig(config)
  if (where.engine === 'memory') throw new Refusal('state.engine is memory: its usage ends with the gateway')
  const state = await openState(where)
  try {
    for await (const record of state.ledger.read({ from, to, onProgress: tenths(io) })) io.out(JSON.stringify(record))
  } finally {
    await state.close()
  }
  return 0
}

/** Says each tenth that is done. */
function tenths (io: Io): (done: number, total: number) => void {
  let said = 0
  return (done, total) => {
    const tenth = Math.floor(10 * done / total)
    if (tenth > said) io.err(`${tenth * 10} % read`)
    said = tenth
  }
}
