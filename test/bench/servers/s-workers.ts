/** The gateway as a user starts it, in as many workers as are asked for behind one port. */
import cluster from 'node:cluster'
import { openSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import Fastify from 'fastify'
import { Primary } from '../../../plugins/standalone/workers/primary.js'
import { portOf, serve, settings, usage, type Usage } from './serve.js'
import { metricsAt, writeConfiguration } from './store-options.js'

// Log lines of the workers go as to a terminal that takes everything.
cluster.setupPrimary({ stdio: ['ignore', openSync('/dev/null', 'a'), 'inherit', 'ipc'] })

const file = writeConfiguration({ engine: 'lmdb' })
const exec = fileURLToPath(new URL('../../../bin/llm-gateway.js', import.meta.url))
const { log } = Fastify({ logger: { level: 'error' } })
const primary = await Primary.start({
  file, env: {}, workers: settings.size, log, program: { exec, args: ['start', '--config', file], execArgv: [] },
})
process.on('exit', () => primary.kill())

const port = portOf(primary.address)
serve(port, {
  metrics: async () => await metricsAt(port),
  usage: async () => primary.pids.reduce<Usage>((sum, pid) => ({ ...sum, cpuUs: sum.cpuUs + processorUs(pid) }), usage()),
})

/** Of all its threads, to the nanosecond: `stat` counts in hundredths of a second. */
function processorUs (pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`)
  return threads.reduce(
    (sum, thread) => sum + Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1_000, 0
  )
}
