import { once, EventEmitter } from 'node:events'
import { parseArgs } from 'node:util'
import { curlLines, originOf } from '../../plugins/standalone/curls.js'
import { Standalone } from '../../plugins/standalone/standalone.js'
import { watchConfig } from '../../plugins/standalone/watch.js'
import type { Io } from '../io.js'

const watchMs = 2_000
/** What shells make of a process that an interrupt ended. */
const killedCode = 130

const flushMs = 1_000

/** Runs until SIGTERM or SIGINT and the end of the requests that run then; a second one ends it at once. SIGHUP or a changed file reloads. */
export async function start (file: string, args: string[], io: Io): Promise<number> {
  parseArgs({ args, options: { config: { type: 'string' } } })
  const gateway = await Standalone.start({ file, env: io.env, ...io.logStream && { logStream: io.logStream } })
  const unwatch = watchConfig(file, watchMs, () => gateway.reload(), () => gateway.priceFiles)
  const ended = new EventEmitter()
  let stopping = false
  const stop = (): void => {
    if (stopping) return io.exit(killedCode)
    stopping = true
    unwatch()
    io.out('stopping once the requests that run have ended; another signal stops at once')
    gateway.stop().then(() => ended.emit('end'))
  }
  io.onSignal('SIGHUP', () => gateway.reload())
  io.onSignal('SIGTERM', stop)
  io.onSignal('SIGINT', stop)
  greet(gateway, io)
  await once(ended, 'end')
  // Lines that nobody takes must not hold the end, as an output that is not empty does.
  if (await io.logStream?.flush?.(flushMs) === false) io.exit(0)
  return 0
}

function greet ({ config, address, consoleAddress }: Standalone, io: Io): void {
  const origin = originOf(address)
  io.out(`llm-gateway listens on ${origin}`)
  io.out(`metrics: ${origin}${config.metrics?.path ?? '/metrics'}`)
  const { path } = config.console ?? {}
  if (consoleAddress !== null) io.out(`console: ${originOf(consoleAddress)}`)
  else if (path !== undefined) io.out(`console: ${origin}${path}`)
  io.out('')
  for (const line of curlLines(config, origin)) io.out(line)
}
