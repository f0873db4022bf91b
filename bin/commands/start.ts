import { once, EventEmitter } from 'node:events'
import Fastify from 'fastify'
import { loadConfig, readServedText } from '../../plugins/standalone/config.js'
import { listenAddress, workersOf, type ListenAddress } from '../../plugins/standalone/config-values.js'
import type { GatewayConfig } from '../../plugins/standalone/config-types.js'
import { curlLines, originOf } from '../../plugins/standalone/curls.js'
import { Standalone } from '../../plugins/standalone/standalone.js'
import { watchConfig } from '../../plugins/standalone/watch.js'
import { Primary } from '../../plugins/standalone/workers/primary.js'
import { runWorker, type Channel } from '../../plugins/standalone/workers/worker.js'
import { configOption, readArgs } from '../args.js'
import type { Io } from '../io.js'

const watchMs = 2_000
/** The exit code that shells report for a process that an interrupt ended. */
const killedCode = 130

type Gateway = Standalone | Primary

/**
 * Runs until SIGTERM or SIGINT, and then until running requests have ended; a second signal ends it at once. SIGHUP or a changed file
 * reloads.
 */
export async function start (file: string, args: string[], io: Io): Promise<number> {
  readArgs({ args, options: configOption })
  if (io.primary) return await work(file, io, io.primary)
  const config = loadConfig(file, io.env, readServedText(file))
  let running: Gateway | null = null
  // Watches before the gateway reads the files: what changes during its start is a change, too.
  const unwatch = watchConfig(file, watchMs, () => reload(), () => running?.priceFiles ?? config.prices?.files ?? [])
  const starting = startGateway(file, config, io)
  // Reloads requested during the start run after it.
  const reload = (): void => { starting.then(async (gateway) => await gateway.reload(), () => {}) }
  const ended = new EventEmitter()
  let stopping = false
  const stop = (): void => {
    if (stopping) {
      if (running instanceof Primary) running.kill()
      return io.exit(killedCode)
    }
    stopping = true
    unwatch()
    io.out('stopping when running requests have ended; another signal stops at once')
    starting.then(async (gateway) => {
      await gateway.stop()
      ended.emit('end')
    }, () => {})
  }
  io.onSignal('SIGHUP', reload)
  io.onSignal('SIGTERM', stop)
  io.onSignal('SIGINT', stop)
  running = await starting.catch((error: unknown) => {
    unwatch()
    throw error
  })
  greet(config, running, io)
  await once(ended, 'end')
  return 0
}

async function startGateway (file: string, config: GatewayConfig, io: Io): Promise<Gateway> {
  const { env, logStream } = io
  const workers = workersOf(config)
  if (workers === 1) return await Standalone.start({ file, env, logStream })
  listenAddress(config, env)
  const { log } = Fastify({ logger: { level: config.log?.level ?? 'info', ...logStream && { stream: logStream } } })
  return await Primary.start({ file, env, workers, log })
}

/** One of several processes behind the port. Only the primary handles signals: a terminal sends them to all. */
async function work (file: string, io: Io, primary: Channel): Promise<number> {
  for (const name of ['SIGHUP', 'SIGTERM', 'SIGINT'] as const) io.onSignal(name, () => {})
  const code = await runWorker({ file, env: io.env, logStream: io.logStream }, primary)
  primary.close()
  return code
}

interface Addresses {
  readonly address: ListenAddress
  readonly consoleAddress: ListenAddress | null
}

function greet (config: GatewayConfig, { address, consoleAddress }: Addresses, io: Io): void {
  const origin = originOf(address)
  io.out(`llm-gateway listens on ${origin}`)
  io.out(`metrics: ${origin}${config.metrics?.path ?? '/metrics'}`)
  const { path } = config.console ?? {}
  if (consoleAddress !== null) io.out(`console: ${originOf(consoleAddress)}`)
  else if (path !== undefined) io.out(`console: ${origin}${path}`)
  io.out('')
  for (const line of curlLines(config, origin)) io.out(line)
}
