import { parseArgs } from 'node:util'
import { loadConfig } from '../../plugins/standalone/config.js'
import { createGateway } from '../../plugins/standalone/gateway.js'
import type { Io } from '../io.js'

/** Says `ok`, or throws what `start` would: the app is built too, but opens no port, no upstream and no store. */
export async function check (file: string, args: string[], io: Io): Promise<number> {
  parseArgs({ args, options: { config: { type: 'string' } } })
  const config = loadConfig(file, io.env)
  const { app } = await createGateway(config, { simulator: null, state: null, cells: {}, consolePath: '/console', life: { draining: false } })
  await app.close()
  io.out(`${file}: ok`)
  return 0
}
