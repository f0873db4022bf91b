import type { Gateway } from '../core/gateway.js'
import type { UsageRules } from '../protocols/usage-rules.js'
import type { ModelCall } from '../core/call/model-call.js'
import { plainText, valueAt } from '../core/body/json-object.js'
import { releaseHold } from '../core/call/request-life.js'
import type { OpenTap } from '../core/types.js'
import type { Told } from './meter.js'
import { planOf } from './plan.js'
import { UsageTap } from './tap.js'

/** Opens a tap on the reply of one request; none unless its status is 2xx, because others have no usage. */
type TapOpener = (llm: ModelCall, rules: UsageRules) => OpenTap

/** `repeats`: the usage is another request's, and this one's only if nobody was charged for it yet. */
export function tapOpener (
  gateway: Gateway, { takeOut = false, repeats = false }: { readonly takeOut?: boolean, readonly repeats?: boolean } = {}
): TapOpener {
  const hold = (llm: ModelCall): void => { llm.holds += 1 }
  const release = (llm: ModelCall): void => { if (llm.request !== null) releaseHold(gateway, llm.request, llm) }
  const told: Told = (llm, usage) => {
    hold(llm)
    Promise.resolve(gateway.usageTold(llm, usage)).then(() => release(llm))
  }
  const options = { takeOut, hold, release, told: repeats ? told : null }
  return (llm, rules) => {
    const plan = planOf(rules, mayHaveSeveral(llm))
    return (statusCode, headers) => {
      if (statusCode < 200 || statusCode > 299 || statusCode === 204) return null
      return new UsageTap(llm, plan, headers, options)
    }
  }
}

/** Whether the reply may have several answers: so it is where nobody has read the body. */
function mayHaveSeveral ({ body: { json }, endpoint: { output } }: ModelCall): boolean {
  return json === undefined || output?.choices.some((path) => Number(plainText(valueAt(json, path))) > 1) === true
}
