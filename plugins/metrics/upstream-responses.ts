import { classOfStatus, statusClassOf } from '../core/call/measures.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { MetricStore } from './store.js'

/** Results of attempts that expected no reply: the upstream was not asked, or the caller did not wait. */
const unanswered: ReadonlySet<string> = new Set(['queue', 'left', 'credential'])

/** If several upstreams may have been asked, each counts its own replies, including those that led to another attempt. */
export function responseRecording (store: MetricStore): (llm: ModelCall) => void {
  const responses = store.counter('upstream_responses_total')
  return (llm) => {
    const { attempts, upstream } = llm.routing
    if (attempts === null) {
      const statusClass = statusClassOf(llm)
      if (statusClass !== null) responses.add(1, upstream ?? 'none', statusClass)
      return
    }
    for (const { upstream, result, status } of attempts) {
      if (status > 0) responses.add(1, upstream, classOfStatus(status))
      else if (!unanswered.has(result)) responses.add(1, upstream, 'error')
    }
  }
}
