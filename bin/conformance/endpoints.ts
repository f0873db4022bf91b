/** Which endpoints a gateway lacks: a check that needs one of them does not apply, so that one cause is not twenty failures. */
import { kinds, type Kind, type Subject } from './check.js'
import { familyOf } from './subject.js'

const absent: ReadonlySet<number> = new Set([404, 405, 501])

/** Thrown by `ask` for an endpoint that the gateway lacks. */
export class NotApplicable extends Error {}

/** Asks each endpoint whose key is given. A gateway with none of them is not running, and must fail. */
export async function missingEndpoints ({ ask, options }: Pick<Subject, 'ask' | 'options'>): Promise<ReadonlySet<Kind>> {
  const asked = kinds.filter((kind) => options.keys[familyOf(kind)] !== '')
  const missing = new Set<Kind>()
  for (const kind of asked) {
    const status = await ask(kind).then((reply) => reply.status, () => 0)
    if (absent.has(status)) missing.add(kind)
  }
  return missing.size === asked.length ? new Set() : missing
}

/** The same subject, except that requests to a missing endpoint end their check. */
export function without (missing: ReadonlySet<Kind>, subject: Subject): Subject {
  return {
    ...subject,
    ask: async (kind, change = {}) => {
      // Another method at another path is no request to the endpoint, whose headers it only borrows.
      const asksIt = change.path === undefined || (change.method ?? 'POST') === 'POST'
      if (asksIt && missing.has(kind)) throw new NotApplicable(`needs ${kind}, which is not there`)
      return await subject.ask(kind, change)
    },
  }
}
