import { existsSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { digestOf } from '../../plugins/auth/keys.js'
import { quote } from '../../plugins/standalone/curls.js'
import { firstConfig } from '../../plugins/standalone/first-config.js'
import { newSecret } from '../../plugins/standalone/issued-keys.js'
import { missingPeers } from '../../plugins/state/peer.js'
import { configOption, readArgs } from '../args.js'
import { CommandError, type Io } from '../io.js'

/** Writes a first configuration. An existing file is not changed. */
export async function init (_file: string, args: string[], io: Io): Promise<number> {
  const { values } = readArgs({ args, options: configOption })
  const config = values.config ?? (io.env['LLM_GATEWAY_CONFIG'] || 'gateway.yaml')
  const schema = schemaFrom(dirname(config))
  const engine = (await missingPeers({ engine: 'lmdb' })).length === 0 ? 'lmdb' : 'memory'
  const secret = newSecret('first')
  write(config, firstConfig({ env: io.env, schema: schema.replace(/^(?![.])/, './'), digest: digestOf(secret), engine }))
  const option = `--config ${/^[\w./][\w./-]*$/.test(config) ? config : quote(config)}`
  io.err(`${config} is written. Next: llm-gateway doctor ${option}, then llm-gateway start ${option}`)
  io.err('Its first key, whose secret is not shown again:')
  io.out(secret)
  return 0
}

const schemaFile = 'fastify-llm-gateway/schemas/gateway.schema.json'

/** Path of the schema from a folder. The folder's own link to it stays where pnpm moves the file to another version's place. */
function schemaFrom (folder: string): string {
  const near = `node_modules/${schemaFile}`
  return existsSync(join(folder, near)) ? near : relative(folder, createRequire(import.meta.url).resolve(schemaFile))
}

function write (file: string, text: string): void {
  try {
    writeFileSync(file, text, { flag: 'wx' })
  } catch (error) {
    const code = String(Object(error).code)
    throw new CommandError(code === 'EEXIST' ? `${file} already exists and was not changed` : `${file} cannot be written (${code})`)
  }
}
