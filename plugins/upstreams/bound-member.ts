import type { ModelCall } from '../core/call/model-call.js'
import { namedBy, type Bindings, type BoundId } from './bindings.js'
import type { Member } from './member.js'

/** The member of a pool that made what a request names. It alone has it, however it does. */
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

  /** Once; null where nothing is named, or nobody knows who made it. */
  find (): Member | null | Promise<Member | null> {
    if (this.#bound === null || this.#isAsked) return null
    this.#isAsked = true
    const name = this.#bindings.find(this.#bound)
    return name instanceof Promise ? this.#later(name) : this.#named(name)
  }

  get isKnown (): boolean {
    return this.#isKnown
  }

  /** Nobody knows it, and to ask each member costs nothing. */
  get isLookedFor (): boolean {
    return this.#bound?.isWanted === true && !this.#isKnown
  }

  async #later (name: Promise<string | null>): Promise<Member | null> {
    return this.#named(await name)
  }

  #named (name: string | null): Member | null {
    const member = this.#members.find(({ upstream }) => upstream.name === name) ?? null
    this.#isKnown = member !== null
    return member
  }
}
