/** Runs a command in this process: its output, its signals and its end. */
import cluster from 'node:cluster'
import { once } from 'node:events'
import { LogOutput, outputOf, plainLines } from '../plugins/standalone/log-output.js'
import { channelOf } from '../plugins/standalone/workers/worker.js'
import { run } from './cli.js'

const flushMs = 1_000

process.stdout.on('error', (error) => {
  // A gateway continues without its output: neither a reader that left nor a full disk ends it.
  if (process.argv[2] === 'start') return
  // The reader of the output may have seen enough, as `head` has.
  const code = Reflect.get(error, 'code')
  if (code === 'EPIPE') process.exit(0)
  process.stderr.write(`llm-gateway: the output cannot be written (${String(code)})\n`)
  process.exit(1)
})
// There is nowhere left to report it.
process.stderr.on('error', () => {})

const plain = process.stdout.isTTY && process.argv[2] === 'start' ? await plainLines(process.stdout) : null

const logStream = new LogOutput(plain ?? outputOf(process.stdout, cluster.isWorker))

process.exitCode = await run(process.argv.slice(2), {
  env: process.env,
  // If nobody reads any more, there is nothing to wait for.
  out: (line) => process.stdout.write(`${line}\n`) || once(process.stdout, 'drain').catch(() => {}),
  err: (line) => { process.stderr.write(`${line}\n`) },
  progress: process.stderr.isTTY ? (text) => process.stderr.write(text) : null,
  onSignal: (signal, listener) => process.on(signal, listener),
  logStream,
  primary: channelOf(cluster.worker),
  exit: (code) => process.exit(code),
})

// Lines that nobody reads must not delay the end of a gateway, as an output that is not empty would.
if (process.argv[2] === 'start') {
  const taken = await Promise.all([logStream, new LogOutput(() => process.stderr)].map(async (output) => await output.flush(flushMs)))
  if (taken.includes(false)) process.exit()
}
