/** How a model request ends: a list of named steps in one fixed order, none of which can keep another from its work. */
import type { FastifyRequest } from 'fastify'
import { OptionError } from '../config/options.js'
import type { ModelCall } from './model-call.js'
import { writeLog } from '../write-log.js'

/**
 * In this order, because each builds on those before it: what was used, what that costs, what is charged, what is recorded, the state of
 * the upstream, and then what reports it. The host's functions come last.
 */
export const settlementSteps = ['usage', 'costs', 'limits', 'ledger', 'upstreams', 'trace', 'metrics', 'log', 'host'] as const

export type SettlementStep = typeof settlementSteps[number]

/** Called once per model request, after its last byte, error, abort or timeout. Nobody waits for what it begins. */
export type Settler = (llm: ModelCall, request: FastifyRequest) => unknown

export class CallSettlement {
  readonly #steps: Array<{ readonly name: SettlementStep, readonly settle: Settler }> = []

  /**
   * Adds a step at its place in the order, whenever it is registered. Throws `LLM_GATEWAY_OPTION` for an unknown name, and for one
   * that is taken: the same request would be counted twice.
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

  /** Adds a function of the host's, after all steps and all earlier functions of the host. */
  onSettled (settle: Settler): void {
    this.#insert('host', settle)
  }

  /** Runs every step. Never throws: a step that throws or rejects is logged, and the others still run. */
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
