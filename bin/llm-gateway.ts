#!/usr/bin/env node
import { inlineMore } from './inline-more.js'

if (process.argv[2] === 'start') {
  // All else takes a while to load, and a reload that is asked for in it must not end the process: nothing is read yet.
  process.on('SIGHUP', () => {})
  // Nor must an end be lost: the first process of a container gets no signal that nobody listens for. What is loaded then listens itself.
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => { if (process.listenerCount(signal) === 1) process.exit(0) })
  inlineMore()
}
await import('./main.js')
