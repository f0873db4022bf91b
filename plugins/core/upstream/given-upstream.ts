import type { ModelCall } from '../call/model-call.js'

/** The name of the upstream or pool that the group of a request has for its protocol, whatever its model. Null if it has none. */
export function givenUpstream ({ auth: { group }, endpoint }: ModelCall): string | null {
  const given = group?.upstream ?? null
  if (given === null || typeof given === 'string') return given
  for (const protocol of endpoint.allowedBy) {
    const upstream = given[protocol]
    if (upstream !== undefined) return upstream
  }
  return null
}

/** True if a request must go to what its group names, by its model or by its protocol, and nowhere else. */
export function hasOwnUpstream (llm: ModelCall): boolean {
  return (llm.auth.group?.routes?.length ?? 0) > 0 || givenUpstream(llm) !== null
}
