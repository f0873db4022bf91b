import { createRequire } from 'node:module'
import type * as undici from 'undici'

// An import would have Node search the whole package for the names that it exports, 2 ms of every start.
export const { Agent: UpstreamAgent, errors, util }: typeof undici = createRequire(import.meta.url)('undici')
