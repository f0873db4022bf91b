#!/usr/bin/env node
import cluster from 'node:cluster'
import { inlineMore } from './inline-more.js'

if (process.argv[2] === 'start') {
  // All else takes a while to load, and a reload that is asked for in it must not end the process: nothing is read yet.
  process.on('SIGHUP', () => {})
  // Nor must an end be lost: the first process of a container gets no signal that nobody listens for. What is loaded then listens itself.
  // A worker leaves them to its primary: a terminal sends them to all.
  const end = (signal: string): void => { if (cluster.isPrimary && process.listenerCount(signal) === 1) process.exit(0) }
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, end)
  inlineMore()
}
await import('./main.js')
