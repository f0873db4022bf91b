/**
 * The gateway as a user starts it, by what it counts in: a configuration file, limits on key and group, a ledger on the disk, log lines.
 */
import { createWriteStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inlineMore } from '../../../bin/inline-more.js'
import { LogOutput } from '../../../plugins/standalone/log-output.js'
import { Standalone } from '../../../plugins/standalone/standalone.js'
import { callerKey, upstreamKey } from '../work.js'
import { portOf, serve, settings } from './serve.js'

const plenty = 1_000_000_000_000
const limits = { requestsPerMinute: plenty, tokensPerMinute: plenty, concurrency: plenty, balance: plenty }

function configuration (state: object): string {
  return JSON.stringify({
    listen: { host: '127.0.0.1', port: 0 },
    upstreams: { main: { url: settings.upstream, credential: upstreamKey } },
    groups: { bench: { protocols: ['chat_completions', 'responses', 'images', 'embeddings'], upstream: 'main', limits } },
    keys: [{ id: 'bench', group: 'bench', secret: callerKey, limits }],
    forward: { connections: settings.connections },
    metrics: { path: '/metrics' },
    state,
  })
}

/** In a folder of its own, which is gone when the process is. `state`: what the configuration says of it, without its path. */
export function writeConfiguration (state: object): string {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-bench-'))
  const file = join(folder, 'gateway.yaml')
  writeFileSync(file, configuration({ ...state, path: join(folder, 'data') }))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  return file
}

export async function metricsAt (port: number): Promise<string> {
  return await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
}

/** As the program does it; its log lines go into a file that takes everything. */
export async function serveStore (state: object): Promise<void> {
  inlineMore()
  const gateway = await Standalone.start({
    file: writeConfiguration(state), env: {}, logStream: new LogOutput(() => createWriteStream('/dev/null')),
  })
  const port = portOf(gateway.address)
  serve(port, { metrics: async () => await metricsAt(port) })
}
