import type { FastifyRequest } from 'fastify'
import type { UsageRules } from '../protocols/usage-rules.js'
import { releaseHold, type Gateway, type LlmRequest, type OpenTap } from '../request.js'
import { planOf } from './plan.js'
import type { ShapeMemory } from './shape-memory.js'
import { UsageTap } from './tap.js'

/** What opens a tap on the reply of one request. Only a reply of status 2xx has usage to tell, or to miss. */
export function openTap (gateway: Gateway, shapes: ShapeMemory, request: FastifyRequest, llm: LlmRequest, rules: UsageRules, takeOut: boolean): OpenTap {
  const options = {
    takeOut,
    shapes,
    hold: () => { llm.holds += 1 },
    release: () => { releaseHold(gateway, request, llm) },
  }
  return (statusCode, headers) => {
    if (statusCode < 200 || statusCode > 299) return null
    return new UsageTap(llm, planOf(rules), headers, options)
  }
}
