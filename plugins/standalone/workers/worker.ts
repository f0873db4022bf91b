import type { Worker } from 'node:cluster'
import { refusalLines } from '../config.js'
import type { Environment } from '../config-yaml.js'
import type { LogStream } from '../gateway.js'
import { Standalone } from '../standalone.js'
import type { FromWorker, ToWorker } from './messages.js'
import { WorkerPeers } from './worker-peers.js'

/** The channel to the primary. */
export interface Channel {
  readonly send: (message: FromWorker) => void
  readonly onMessage: (listener: (message: ToWorker) => void) => void
  /** Closes the channel after everything is sent. */
  readonly close: () => void
}

/** `worker`: this process's worker object in its cluster, if any. */
export function channelOf (
  worker: Pick<Worker, 'isConnected' | 'send' | 'on' | 'process' | 'exitedAfterDisconnect'> | undefined
): Channel | null {
  if (worker === undefined) return null
  // What cannot be sent to a primary that was killed, by this or by Node itself. Node then ends the process.
  worker.on('error', () => {})
  return {
    send: (message) => { if (worker.isConnected()) worker.send(message) },
    onMessage: (listener) => { worker.on('message', listener) },
    close: () => {
      // Otherwise Node ends the process with the channel, before its listeners have sent their counts.
      worker.exitedAfterDisconnect = true
      setImmediate(() => worker.process.disconnect())
    },
  }
}

export interface WorkerOptions {
  readonly file: string
  readonly env: Environment
  readonly logStream?: LogStream | undefined
}

/** How often a console is updated with the others' counts. */
const consoleMs = 1_000

/** Serves until the primary ends it. Resolves with the exit code. */
export async function runWorker (options: WorkerOptions, { send, onMessage }: Omit<Channel, 'close'>): Promise<number> {
  const peers = new WorkerPeers(send)
  let text = ''
  let gateway: Standalone | null = null
  let starting: Promise<void> | null = null
  return await new Promise((resolve) => {
    const start = async (firstText: string): Promise<void> => {
      try {
        gateway = await Standalone.start({ ...options, text: () => text, firstText, peers })
      } catch (error) {
        send({ type: 'failed', message: refusalLines(error, options.file).join('\n') })
        resolve(1)
        return
      }
      const { address, config, consoleAddress } = gateway
      if (config.console !== undefined) setInterval(() => peers.refresh(), consoleMs).unref()
      send({ type: 'ready', address, consoleAddress })
    }
    const stop = async (): Promise<void> => {
      await starting
      await gateway?.stop()
      resolve(0)
    }
    onMessage((message) => {
      if (message.type === 'start') {
        text = message.text
        starting = start(message.firstText)
      } else if (message.type === 'reload') {
        const before = text
        text = message.text
        gateway?.reload().then((ok) => {
          if (!ok) text = before
          send({ type: 'reloaded', ok })
        })
      } else if (message.type === 'stop') stop()
      else peers.hear(message)
    })
    send({ type: 'asks to start' })
  })
}
