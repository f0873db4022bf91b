/** How a model request ends: a list of named steps in one fixed order, none of which can keep another from its work. */
import type { FastifyRequest } from 'fastify'
import { OptionError } from '../config/options.js'
import type { ModelCall } from './model-call.js'
import { writeLog } from '../write-log.js'

/**
 * Each builds on those before it: what was used, what that costs, what is charged for it and what is kept of it, by the
 * gateway and by its upstream, and then those who tell of it. Last the functions of the host.
 */
export const settlementSteps = ['usage', 'costs', 'limits', 'ledger', 'upstreams', 'trace', 'metrics', 'log', 'host'] as const

export type SettlementStep = typeof settlementSteps[number]

/** Called once per model request, after its last byte, error, abort or timeout. Nobody waits for what it begins. */
export type Settler = (llm: ModelCall, request: FastifyRequest) => unknown

export class Settlement {
  readonly #steps: Array<{ readonly name: SettlementStep, readonly settle: Settler }> = []

  /**
   * Puts a part of the gateway in its place of the order, whenever it is registered. Throws `LLM_GATEWAY_OPTION` for a name
   * that is not in it, and for one that is taken: the same request would be counted twice.
   */
  add (name: SettlementStep, settle: Settler): void {
    if (!settlementSteps.includes(name)) throw new OptionError('settlement', `has no step ${name}`)
    if (this.#steps.some((step) => step.name === name)) {
      throw new OptionError(
        'settlement', `has its step ${name} already: one plugin of a kind for an app, or one in each scope with all its plugins`
      )
    }
    this.#insert(name, settle)
  }

  /** Adds a function of the host's after all steps, and after the host's functions before it. */
  readonly onSettled = (settle: Settler): void => {
    this.#insert('host', settle)
  }

  /** Runs every step. Never throws: one that does is told in the log, and so is a promise that one returns and that fails. */
  run (llm: ModelCall, request: FastifyRequest): void {
    for (const { name, settle } of this.#steps) {
      try {
        const result = settle(llm, request)
        if (result instanceof Promise) result.catch((error: unknown) => tellFailure(name, error, llm, request))
      } catch (error) {
        tellFailure(name, error, llm, request)
      }
    }
  }

  #insert (name: SettlementStep, settle: Settler): void {
    const place = settlementSteps.indexOf(name)
    const after = this.#steps.findIndex((step) => settlementSteps.indexOf(step.name) > place)
    this.#steps.splice(after === -1 ? this.#steps.length : after, 0, { name, settle })
  }
}

function tellFailure (step: SettlementStep, error: unknown, { id }: ModelCall, { log }: FastifyRequest): void {
  writeLog(log, 'error', { err: error, step, id }, 'a model request could not be settled in full')
}
