/**
 * The log of each request, whose lines are made into text together with those of others. Made one by one, in between everything else that a
 * request runs, they cost nearly twice as much, because what makes them has left the processor's caches each time (docs/performance.md).
 */
import type { FastifyBaseLogger, FastifyServerOptions } from 'fastify'

/** A line that is not text yet. */
export interface LateLine {
  /** Makes its text and writes it. Throws the logger's errors. */
  readonly write: () => void
}

interface LateOptions {
  /** For the app's logger: the time of a line is when it was logged, not when it became text. */
  readonly logger: { readonly timestamp?: () => string }
  readonly app: Pick<FastifyServerOptions, 'childLoggerFactory'>
}

type Child = FastifyBaseLogger['child']
type Said = readonly unknown[]

/** Time of the line that is being made, in milliseconds since the epoch. */
let toldAt: number | null = null

/** For an app that writes with pino to `output`: what its requests log at the level `info` goes to `late` of the output, if it has that. */
export function lateOptions (output: { late?: (line: LateLine) => void } | undefined): LateOptions {
  if (output?.late === undefined) return { logger: {}, app: {} }
  const take = output.late.bind(output)
  return {
    logger: { timestamp: () => `,"time":${toldAt ?? Date.now()}` },
    app: { childLoggerFactory: (logger, bindings, options) => new RequestLog(logger, [bindings, options], take) },
  }
}

/** A child of the app's logger, made when something is written. */
class RequestLog implements FastifyBaseLogger {
  readonly #parent: FastifyBaseLogger
  readonly #binding: Parameters<Child>
  readonly #take: (line: LateLine) => void

  constructor (parent: FastifyBaseLogger, binding: Parameters<Child>, take: (line: LateLine) => void) {
    this.#parent = parent
    this.#binding = binding
    this.#take = take
  }

  get level (): string { return this.#parent.level }

  isLevelEnabled (level: string): boolean { return Object(this.#parent).isLevelEnabled(level) === true }

  info (...said: Said): void { this.#take(new RequestLine(this, said)) }

  trace (...said: Said): void { this.write('trace', said) }

  debug (...said: Said): void { this.write('debug', said) }

  warn (...said: Said): void { this.write('warn', said) }

  error (...said: Said): void { this.write('error', said) }

  fatal (...said: Said): void { this.write('fatal', said) }

  silent (): void {}

  child (...binding: Parameters<Child>): FastifyBaseLogger { return this.#self().child(...binding) }

  /** Writes at once. */
  write (level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal', said: Said): void {
    const self = this.#self()
    Reflect.apply(self[level], self, said)
  }

  #self (): FastifyBaseLogger {
    return this.#parent.child(...this.#binding)
  }
}

class RequestLine implements LateLine {
  readonly #toldAt = Date.now()
  readonly #log: RequestLog
  readonly #said: Said

  constructor (log: RequestLog, said: Said) {
    this.#log = log
    this.#said = said
  }

  write (): void {
    toldAt = this.#toldAt
    try {
      this.#log.write('info', this.#said)
    } finally {
      toldAt = null
    }
  }
}
