#!/usr/bin/env node
import cluster from 'node:cluster'
import { inlineMore } from './inline-more.js'

if (process.argv[2] === 'start') {
  // Everything else takes a while to load, and a reload requested meanwhile must not end the process: nothing is read yet.
  process.on('SIGHUP', () => {})
  // Nor may a request to end be lost: the first process of a container gets no signal without a listener. The loaded program has its own
  // listeners. A worker leaves signals to its primary: a terminal sends them to all.
  const end = (signal: string): void => { if (cluster.isPrimary && process.listenerCount(signal) === 1) process.exit(0) }
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, end)
  inlineMore()
}
await import('./main.js')
