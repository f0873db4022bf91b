import { performance } from 'node:perf_hooks'
import { gatewayError } from '../core/errors/gateway-error.js'
import { readPlainFile } from '../core/config/plain-file.js'
import type { Secret } from '../core/upstream/upstream.js'
import { withTimeout } from '../core/with-timeout.js'

/** A secret with its expiry: milliseconds since the epoch, or a date. */
interface ExpiringSecret {
  readonly secret: string
  readonly expiresAt: number | Date
}

type Given = string | ExpiringSecret

/** Returns the provider's secret; called whenever a new one may be due. */
export type CredentialFunction = () => Given | Promise<Given>

interface RenewalRules {
  /** How long a secret without an expiry is used before it is asked for again. */
  readonly keepMs: number
  /** A secret that is older is not used until it was asked for again. */
  readonly staleMs: number
  /** How long to wait for an answer. */
  readonly timeoutMs: number
  /** The same if an older secret is at hand. */
  readonly patienceMs: number
  /** After a failure, and between two that are forced. */
  readonly pauseMs: number
  /** A monotonic clock: if the wall clock were set back, a secret kept for a second would be kept for hours. */
  readonly now: () => number
  /** The wall clock, for secrets with an expiry. */
  readonly wallNow: () => number
}

const clocks = { now: () => performance.now(), wallNow: Date.now }

/**
 * A file is read again each second in which it is used: Kubernetes swaps a link above it, which a watch of the file does not notice. The
 * first request after a pause waits for the reading, or it would use what the file held before; if the disk stalls, it does not wait long.
 */
const fileRules: RenewalRules = {
  keepMs: 1_000, staleMs: 2_000, timeoutMs: 5_000, patienceMs: 200, pauseMs: 1_000, ...clocks,
}
const functionRules: RenewalRules = {
  keepMs: 30_000, staleMs: Infinity, timeoutMs: 10_000, patienceMs: Infinity, pauseMs: 5_000, ...clocks,
}

/** The pause after a failure if there is no secret at all: as long as a refused caller waits before it comes again. */
const missingPauseMs = 1_000

/** As in the official client libraries: renewed from two minutes before expiry, and waited for in the last half minute. */
const aheadMs = 120_000
const lastMs = 30_000

interface Held {
  readonly text: string
  /** The number of the question that it answers. */
  readonly turn: number
  /** Until then no other one is asked for. */
  readonly freshUntil: number
  /** From then on requests wait for another one. */
  readonly goodUntil: number
  readonly endsAt: number
}

export function fixedSecret (text: string | null): Secret {
  return { current: () => text, known: () => text, renew: null }
}

export function fileSecret (path: string, rules: Partial<RenewalRules> = {}): Secret {
  return new RenewedSecret(async () => (await readPlainFile(path)).trim(), { ...fileRules, ...rules })
}

export function functionSecret (ask: CredentialFunction, rules: Partial<RenewalRules> = {}): Secret {
  return new RenewedSecret(async () => await ask(), { ...functionRules, ...rules })
}

/** True for what a header can carry: visible ASCII without blanks. */
export function isSecret (value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)
}

/**
 * A secret that changes: asked for once at a time, kept until it expires, renewed before. While renewing fails, the old one is used as
 * long as it is valid.
 */
class RenewedSecret implements Secret {
  readonly #ask: () => Promise<Given>
  readonly #rules: RenewalRules
  #held: Held | null = null
  #asking: Promise<string> | null = null
  #forcing: Promise<string> | null = null
  #turns = 0
  #failedAt = -Infinity
  #forcedAt = -Infinity

  constructor (ask: () => Promise<Given>, rules: RenewalRules) {
    this.#ask = ask
    this.#rules = rules
  }

  readonly current = (): string | Promise<string> => {
    const now = this.#rules.now()
    const held = this.#held
    if (held === null || now >= held.endsAt) return now < this.#failedAt + missingPauseMs ? unavailable() : this.#awaited()
    if (now < held.freshUntil || now < this.#failedAt + this.#rules.pauseMs) return held.text
    if (now >= held.goodUntil) return this.#awaited()
    this.#asked().catch(() => {})
    return held.text
  }

  readonly known = (): string | null => this.#held?.text ?? null

  /** Never joins a load that began before the refusal: its answer may be the refused secret. */
  readonly renew = async (refused: string): Promise<string> => {
    const held = this.#held
    if (held !== null && held.text !== refused) return held.text
    const now = this.#rules.now()
    if (this.#forcing === null && now < this.#forcedAt + this.#rules.pauseMs) return refused
    this.#forcedAt = now
    this.#forcing ??= this.#load().finally(() => { this.#forcing = null })
    return await this.#forcing
  }

  /** Waits for a new one; falls back to the old one as long as that is valid. */
  async #awaited (): Promise<string> {
    try {
      return this.#held === null ? await this.#asked() : await withTimeout(this.#rules.patienceMs, this.#asked())
    } catch (error) {
      const now = this.#rules.now()
      if (this.#held === null || now >= this.#held.endsAt) throw error
      this.#failedAt = now
      return this.#held.text
    }
  }

  async #asked (): Promise<string> {
    this.#asking ??= this.#load().finally(() => { this.#asking = null })
    return await this.#asking
  }

  async #load (): Promise<string> {
    this.#turns += 1
    const turn = this.#turns
    try {
      const held = readGiven(await withTimeout(this.#rules.timeoutMs, this.#ask()), turn, this.#rules)
      // The answer to an earlier question may come last, and be the secret that was refused meanwhile.
      if (this.#held === null || this.#held.turn < turn) this.#held = held
      this.#failedAt = -Infinity
      return this.#held.text
    } catch {
      // The error is dropped: it may contain the secret, or where it is kept.
      this.#failedAt = this.#rules.now()
      return await unavailable()
    }
  }
}

async function unavailable (): Promise<never> {
  throw gatewayError('upstream_credential_unavailable')
}

function readGiven (given: Given, turn: number, { keepMs, staleMs, now, wallNow }: RenewalRules): Held {
  const text = typeof given === 'string' ? given : given.secret
  if (!isSecret(text)) throw new TypeError('no secret')
  if (typeof given === 'string') return { text, turn, freshUntil: now() + keepMs, goodUntil: now() + staleMs, endsAt: Infinity }
  const left = Number(given.expiresAt) - wallNow()
  if (!(left > 0)) throw new TypeError('the secret has ended')
  const endsAt = now() + left
  return { text, turn, freshUntil: endsAt - Math.min(aheadMs, left / 2), goodUntil: endsAt - Math.min(lastMs, left / 8), endsAt }
}
