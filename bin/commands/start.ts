import { once, EventEmitter } from 'node:events'
import { parseArgs } from 'node:util'
import { curlLines, originOf } from '../../plugins/standalone/curls.js'
import { Standalone } from '../../plugins/standalone/standalone.js'
import { watchConfig } from '../../plugins/standalone/watch.js'
import type { Io } from '../io.js'

/** Runs until SIGTERM or SIGINT; a second one waits for no request any more. SIGHUP or a changed file reloads. */
export async function start (file: string, args: string[], io: Io): Promise<number> {
  parseArgs({ args, options: { config: { type: 'string' } } })
  const gateway = await Standalone.start({ file, env: io.env, ...io.logStream && { logStream: io.logStream } })
  const unwatch = watchConfig(file, 2_000, () => gateway.reload())
  const ended = new EventEmitter()
  const stop = (): void => {
    unwatch()
    gateway.stop().then(() => ended.emit('end'))
  }
  io.onSignal('SIGHUP', () => gateway.reload())
  io.onSignal('SIGTERM', stop)
  io.onSignal('SIGINT', stop)
  greet(gateway, io)
  await once(ended, 'end')
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
