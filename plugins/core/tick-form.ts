import { AsyncResource } from 'node:async_hooks'

/**
 * An object with the hidden class of the objects that `process.nextTick` queues. If none is alive during a full collection, as in the
 * pauses of a program that has just started, V8 drops that hidden class and never again optimizes `nextTick`: a tick then takes 0.5 to
 * 0.9 us instead of 0.15, and a request has some ten (docs/performance.md; Node 20 and V8 11.3). Kept alive by the gateway object.
 */
export function tickForm (): object {
  const [asyncId = Symbol('id'), triggerId = Symbol('trigger')] = Object.getOwnPropertySymbols(new AsyncResource('fastify-llm-gateway'))
  // Ids come from an array of floats; a whole number here would make another form.
  return { [asyncId]: 0.5, [triggerId]: 0.5, callback: tickForm, args: undefined }
}
