import type { Gateway } from '../core/gateway.js'
import type { UsageRules } from '../protocols/usage-rules.js'
import type { ModelCall } from '../core/call/model-call.js'
import { releaseHold } from '../core/call/request-life.js'
import type { OpenTap } from '../core/types.js'
import { planOf } from './plan.js'
import { UsageTap } from './tap.js'

/** Opens a tap on the reply of one request; none unless its status is 2xx, because others have no usage. */
type TapOpener = (llm: ModelCall, rules: UsageRules) => OpenTap

/** `counts`: usage is recorded, and not only how the reply ends. */
export function tapOpener (
  gateway: Gateway, { takeOut = false, counts = true }: { readonly takeOut?: boolean, readonly counts?: boolean } = {}
): TapOpener {
  const options = {
    takeOut,
    counts,
    hold: (llm: ModelCall) => { llm.holds += 1 },
    release: (llm: ModelCall) => { if (llm.request !== null) releaseHold(gateway, llm.request, llm) },
  }
  return (llm, rules) => (statusCode, headers) => {
    if (statusCode < 200 || statusCode > 299 || statusCode === 204) return null
    return new UsageTap(llm, planOf(rules), headers, options)
  }
}
