import type { Worker } from 'node:cluster'
import { tell } from './messages.js'

/** One reading of the configuration file. Reading it again makes another edition: a price list that it names may have changed. */
export interface Edition {
  readonly text: string
  readonly priceFiles: readonly string[]
}

type Outcome = 'taken' | 'refused' | 'gone'

/** A worker that has not answered by then never will, and is replaced. */
const defaultAnswerMs = 60_000

/** Which worker serves which configuration, and how a new one reaches all: one worker after the other, each without a pause. */
export class Rollout {
  readonly #ready: () => Iterable<Worker>
  readonly #answerMs: number
  readonly #served = new WeakMap<Worker, Edition>()
  #asked: { readonly worker: Worker, readonly done: (outcome: Outcome) => void } | null = null
  /** All workers have its port and state folder, however late they begin. */
  readonly #first: Edition
  #current: Edition

  constructor (first: Edition, ready: () => Iterable<Worker>, answerMs = defaultAnswerMs) {
    this.#first = first
    this.#current = first
    this.#ready = ready
    this.#answerMs = answerMs
  }

  isBehind (worker: Worker): boolean {
    return this.#served.get(worker) !== this.#current
  }

  begin (worker: Worker): void {
    this.#served.set(worker, this.#current)
    tell(worker, { type: 'start', text: this.#current.text, firstText: this.#first.text })
  }

  /** False if a worker refuses it; all then serve what they did before. */
  async replace (next: Edition): Promise<boolean> {
    const before = this.#current
    // Workers that begin meanwhile begin with it: with the old one they would be asked in turn, and so would their replacements.
    this.#current = next
    for (let worker = this.#other(next); worker !== undefined; worker = this.#other(next)) {
      if (await this.#change(worker, next) !== 'refused') continue
      this.#current = before
      await this.catchUp()
      return false
    }
    return true
  }

  /** Makes all workers that serve another configuration than the current one change to it. */
  async catchUp (): Promise<void> {
    // Not a copy of the list: a worker that ended in the meantime would never answer.
    for (const worker of this.#ready()) if (this.isBehind(worker)) await this.#change(worker, this.#current)
  }

  /** A worker reported whether it took the configuration. */
  answered (worker: Worker, ok: boolean): void {
    if (this.#asked?.worker === worker) this.#asked.done(ok ? 'taken' : 'refused')
  }

  ended (worker: Worker): void {
    if (this.#asked?.worker === worker) this.#asked.done('gone')
  }

  #other (edition: Edition): Worker | undefined {
    for (const worker of this.#ready()) if (this.#served.get(worker) !== edition) return worker
    return undefined
  }

  async #change (worker: Worker, edition: Edition): Promise<Outcome> {
    const timer = setTimeout(() => worker.process.kill('SIGKILL'), this.#answerMs)
    const outcome = await new Promise<Outcome>((resolve) => {
      this.#asked = { worker, done: resolve }
      tell(worker, { type: 'reload', text: edition.text })
    })
    clearTimeout(timer)
    this.#asked = null
    if (outcome === 'taken') this.#served.set(worker, edition)
    return outcome
  }
}
