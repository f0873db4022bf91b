import { expectStatus, type Change, type Check, type Kind } from '../check.js'
import { familyOf } from '../subject.js'

/** Requests that have to succeed, whatever their replies. */
export interface Accepted {
  readonly number: number
  readonly title: string
  readonly kind: Kind
  /** `key`: that of the kind's family. */
  readonly changes: (key: string) => readonly Change[]
}

export function accept ({ number, title, kind, changes }: Accepted): Check {
  const family = familyOf(kind)
  return {
    number,
    title,
    needs: [family],
    async run ({ ask, options }) {
      for (const change of changes(options.keys[family])) expectStatus(await ask(kind, change), 200)
      return '200'
    },
  }
}
