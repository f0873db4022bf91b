import { parseArgs } from 'node:util'
import { loadConfig } from '../../plugins/standalone/config.js'
import { createGateway } from '../../plugins/standalone/gateway.js'
import { addressWarning } from '../../plugins/upstreams/address-warning.js'
import type { Io } from '../io.js'

/** Says `ok`, or throws what `start` would: the app is built too, but opens no port, no upstream and no store. */
export async function check (file: string, args: string[], io: Io): Promise<number> {
  parseArgs({ args, options: { config: { type: 'string' } } })
  const config = loadConfig(file, io.env)
  const { app } = await createGateway(config, { simulator: null, state: null, cells: {}, consolePath: '/console', life: { draining: false } })
  await app.close()
  for (const [name, entry] of Object.entries(config.upstreams)) {
    const warning = entry.simulate === true ? null : addressWarning(entry)
    if (warning !== null) io.err(`${file}: warning: upstreams.${name}.url ${warning}`)
  }
  io.out(`${file}: ok`)
  return 0
}
