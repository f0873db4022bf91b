import type { ModelCall } from '../core/call/model-call.js'
import { namedBy, type Bindings, type BoundId } from './bindings.js'
import type { Member } from './member.js'

/** The member of a pool that made what a request names. Only that member has it, whatever its health, unless it is a preference. */
export class BoundMember {
  readonly #members: readonly Member[]
  readonly #bindings: Bindings
  readonly #bound: BoundId | null
  #isKnown = false
  #isAsked = false

  constructor (members: readonly Member[], llm: ModelCall, bindings: Bindings) {
    this.#members = members
    this.#bindings = bindings
    this.#bound = members.length > 1 ? namedBy(llm) : null
  }

  /** Asks once; null if the request names nothing, or the member is not known. */
  find (): Member | null | Promise<Member | null> {
    if (this.#bound === null || this.#isAsked) return null
    this.#isAsked = true
    const name = this.#bindings.find(this.#bound)
    return name instanceof Promise ? this.#later(name) : this.#named(name)
  }

  get isKnown (): boolean {
    return this.#isKnown
  }

  /** It is not known, and asking each member costs nothing. */
  get isLookedFor (): boolean {
    return this.#bound?.isWanted === true && !this.#isKnown
  }

  async #later (name: Promise<string | null>): Promise<Member | null> {
    return this.#named(await name)
  }

  #named (name: string | null): Member | null {
    const member = this.#members.find(({ upstream }) => upstream.name === name) ?? null
    this.#isKnown = member !== null && this.#bound?.isPreference === false
    return member
  }
}
