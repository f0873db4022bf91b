#!/usr/bin/env node
import { inlineMore } from './inline-more.js'

if (process.argv[2] === 'start') {
  // All else takes a while to load, and a reload that is asked for in it must not end the process: nothing is read yet.
  process.on('SIGHUP', () => {})
  inlineMore()
}
await import('./main.js')
