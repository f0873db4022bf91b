import { performance } from 'node:perf_hooks'
import { gatewayError } from '../core/errors/gateway-error.js'
import { readPlainFile } from '../core/config/plain-file.js'
import type { Secret } from '../core/upstream/upstream.js'
import { withTimeout } from '../core/with-timeout.js'

/** A secret with its expiry: milliseconds since the epoch, or a date. */
export interface ExpiringSecret {
  readonly secret: string
  readonly expiresAt: number | Date
}

type Given = string | ExpiringSecret

/** Returns the provider's secret; called whenever a new one may be due. */
export type CredentialFunction = () => Given | Promise<Given>

export interface RenewalRules {
  /** How long a secret that does not tell its end is used before it is asked for again. */
  readonly keepMs: number
  /** One that is older is not used before it was asked for again, however long nobody needed it. */
  readonly staleMs: number
  /** The longest that an answer is waited for. */
  readonly timeoutMs: number
  /** The same where an older one is at hand. */
  readonly patienceMs: number
  /** After a failure, and between two that are forced. */
  readonly pauseMs: number
  /** Never goes back, as the wall clock may: what was to be kept for a second would be kept for hours. */
  readonly now: () => number
  /** Tells how long a secret lasts that tells its end. */
  readonly wallNow: () => number
}

const clocks = { now: () => performance.now(), wallNow: Date.now }

/**
 * A file is read again each second in which it is used: Kubernetes swaps a link above it, which no watch of the file tells. The first
 * request after a pause waits for that, or it would carry what the file held before the pause; a disk that stalls does not keep it long.
 */
const fileRules: RenewalRules = {
  keepMs: 1_000, staleMs: 2_000, timeoutMs: 5_000, patienceMs: 200, pauseMs: 1_000, ...clocks,
}
const functionRules: RenewalRules = {
  keepMs: 30_000, staleMs: Infinity, timeoutMs: 10_000, patienceMs: Infinity, pauseMs: 5_000, ...clocks,
}

/** After a failure, where nothing is at hand: as soon as a caller that was refused for it comes again. */
const missingPauseMs = 1_000

/** As the official client libraries of providers have it: renewed from two minutes ahead, and waited for in the last half minute. */
const aheadMs = 120_000
const lastMs = 30_000

interface Held {
  readonly text: string
  /** Until then nobody asks for another one. */
  readonly freshUntil: number
  /** From then on another one is waited for. */
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
 * One that changes: asked for once at a time, kept until it ends, renewed ahead; while that fails, the old one is used as long as it is
 * good.
 */
class RenewedSecret implements Secret {
  readonly #ask: () => Promise<Given>
  readonly #rules: RenewalRules
  #held: Held | null = null
  #asking: Promise<string> | null = null
  #forcing: Promise<string> | null = null
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

  /** An answer that was asked for before the refusal may be the one that was refused: it is never joined. */
  readonly renew = async (refused: string): Promise<string> => {
    const held = this.#held
    if (held !== null && held.text !== refused) return held.text
    const now = this.#rules.now()
    if (this.#forcing === null && now < this.#forcedAt + this.#rules.pauseMs) return refused
    this.#forcedAt = now
    this.#forcing ??= this.#load().finally(() => { this.#forcing = null })
    return await this.#forcing
  }

  /** The old one where no other is to be had, as long as it lasts. */
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
    try {
      const held = readGiven(await withTimeout(this.#rules.timeoutMs, this.#ask()), this.#rules)
      this.#held = held
      this.#failedAt = -Infinity
      return held.text
    } catch {
      // What it says may hold the secret, or where it is.
      this.#failedAt = this.#rules.now()
      return await unavailable()
    }
  }
}

async function unavailable (): Promise<never> {
  throw gatewayError('upstream_credential_unavailable')
}

function readGiven (given: Given, { keepMs, staleMs, now, wallNow }: RenewalRules): Held {
  const text = typeof given === 'string' ? given : given.secret
  if (!isSecret(text)) throw new TypeError('no secret')
  if (typeof given === 'string') return { text, freshUntil: now() + keepMs, goodUntil: now() + staleMs, endsAt: Infinity }
  const left = Number(given.expiresAt) - wallNow()
  if (!(left > 0)) throw new TypeError('the secret has ended')
  const endsAt = now() + left
  return { text, freshUntil: endsAt - Math.min(aheadMs, left / 2), goodUntil: endsAt - Math.min(lastMs, left / 8), endsAt }
}
