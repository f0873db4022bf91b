import { join } from 'node:path'
import type { Test } from 'tap'

/** Path of a configuration that is there as long as the test. */
export function file (t: Test, text: string): string {
  return join(t.testdir({ 'gateway.yaml': text }), 'gateway.yaml')
}

/** The smallest one. */
export const small = 'upstreams: { a: { simulate: true } }\ngroups: { a: { protocols: [messages] } }\nstate: { engine: memory }'
