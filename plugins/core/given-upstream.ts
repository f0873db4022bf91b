import type { ModelCall } from './model-call.js'

/** The name of the upstream that the group of a request has for its protocol: it must go there and nowhere else. Null where it has none. */
export function givenUpstream ({ group, endpoint }: ModelCall): string | null {
  const given = group?.upstream ?? null
  if (given === null || typeof given === 'string') return given
  const protocol = endpoint.allowedBy.find((name) => given[name] !== undefined)
  return protocol === undefined ? null : given[protocol] ?? null
}
