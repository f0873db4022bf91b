/** Fields of a model call as a test gives them: of a part only those that matter. */
import { CallAuth, ReplyUsage, RequestBody, Routing, UpstreamReply } from '../../plugins/core/call/call-parts.js'
import type { ModelCall } from '../../plugins/core/call/model-call.js'

const parts = [CallAuth, RequestBody, Routing, UpstreamReply, ReplyUsage]

type Part = InstanceType<typeof parts[number]>

export type CallFields = { readonly [K in keyof ModelCall]?: ModelCall[K] extends Part ? Partial<ModelCall[K]> : ModelCall[K] }

/** A name that is none of its fields fails: types let it pass in a spread. */
function setAll (target: object, fields: object): void {
  for (const [name, value] of Object.entries(fields)) {
    if (!(name in target)) throw new Error(`a call has no ${name}`)
    Reflect.set(target, name, value)
  }
}

export function fillCall (call: ModelCall, fields: CallFields): ModelCall {
  for (const [name, value] of Object.entries(fields)) {
    const present: unknown = Reflect.get(call, name)
    if (present instanceof Object && parts.some((part) => present instanceof part)) setAll(present, Object(value))
    else setAll(call, { [name]: value })
  }
  return call
}
