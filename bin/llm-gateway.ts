#!/usr/bin/env node
import cluster from 'node:cluster'
import { once } from 'node:events'
import { LogOutput, outputOf, plainLines } from '../plugins/standalone/log-output.js'
import { channelOf } from '../plugins/standalone/workers/worker.js'
import { run } from './cli.js'

// Whoever reads the output may have seen enough, as `head` has.
process.stdout.on('error', (error) => {
  if (Reflect.get(error, 'code') !== 'EPIPE') throw error
  // A gateway goes on without a reader of its log.
  if (process.argv[2] !== 'start') process.exit(0)
})

const plain = process.stdout.isTTY && process.argv[2] === 'start' ? await plainLines(process.stdout) : null

process.exitCode = await run(process.argv.slice(2), {
  env: process.env,
  // Where nobody reads any more there is nothing to wait for.
  out: (line) => process.stdout.write(`${line}\n`) || once(process.stdout, 'drain').catch(() => {}),
  err: (line) => process.stderr.write(`${line}\n`),
  progress: process.stderr.isTTY ? (text) => process.stderr.write(text) : null,
  onSignal: (signal, listener) => process.on(signal, listener),
  logStream: new LogOutput(plain ?? outputOf(process.stdout)),
  primary: channelOf(cluster.worker),
  exit: (code) => process.exit(code),
})
