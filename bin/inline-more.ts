import { setFlagsFromString } from 'node:v8'

/**
 * Bytes of bytecode that V8 may inline into one compiled function, together and for each; its own limits, made for web pages, are 920 and
 * 460.
 */
export const inlining = ['--max-inlined-bytecode-size-cumulative=5000', '--max-inlined-bytecode-size=1000'] as const

/**
 * Makes V8 inline more of what a request calls, some hundred short functions: a request costs a tenth less CPU (docs/performance.md). Only
 * for our own programs, because it affects the whole process.
 */
export function inlineMore (): void {
  for (const flag of inlining) setFlagsFromString(flag)
}
