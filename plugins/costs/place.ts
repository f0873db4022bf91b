import { joinPath } from '../core/config/join-path.js'

/** Records a mistake in a price list. `path`: `models.gpt-5.above[0]`. */
type Report = (path: string, message: string) => void

/** A place in a price list, at which a mistake can be reported. */
export class Place {
  readonly #path: string
  readonly #report: Report

  constructor (path: string, report: Report) {
    this.#path = path
    this.#report = report
  }

  /** The place of these keys and indexes below it. */
  in (...parts: ReadonlyArray<string | number>): Place {
    return new Place(parts.reduce<string>(joinPath, this.#path), this.#report)
  }

  report (message: string): void {
    this.#report(this.#path, message)
  }
}
