export interface PlacedProblem {
  /** The file, with line and column if it cannot be parsed; or the option. */
  readonly place: string
  /** Counted from 1; null if unknown. */
  readonly line: number | null
  readonly path: string
  readonly message: string
}

/** Price lists cannot be used. Carries every problem that was found. */
export class PriceError extends Error {
  readonly code = 'LLM_GATEWAY_PRICES'
  readonly problems: readonly PlacedProblem[]

  constructor (problems: readonly PlacedProblem[]) {
    super(problems.map(inWords).join('\n'))
    this.name = 'PriceError'
    this.problems = problems
  }
}

/** `prices.yaml:7: models.gpt-5.input: must not be negative` */
export function inWords ({ place, line, path, message }: PlacedProblem): string {
  return [line === null ? place : `${place}:${line}`, path, message].filter(Boolean).join(': ')
}
