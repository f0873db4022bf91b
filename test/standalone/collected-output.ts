import { Writable } from 'node:stream'
import { LogOutput } from '../../plugins/standalone/log-output.js'

/** A log output and all that it has written, write by write. */
export function collectedOutput (): { readonly output: LogOutput, readonly writes: string[] } {
  const writes: string[] = []
  const output = new LogOutput(() => new Writable({
    write (chunk, _, done) {
      writes.push(String(chunk))
      done()
    },
  }))
  return { output, writes }
}
