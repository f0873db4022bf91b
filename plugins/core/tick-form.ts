import { AsyncResource } from 'node:async_hooks'

/**
 * An object of the form that Node gives to what `process.nextTick` queues. Where none lives while old memory is collected, as in the
 * pauses of a program that has just begun, V8 forgets that form, and takes what it learnt of `nextTick` before for wrong until the
 * process ends: a tick then takes 0.5 to 0.9 us instead of 0.15, and a request has some ten (docs/performance.md; Node 20 and V8 11.3).
 * Alive for as long as a gateway is.
 */
export function tickForm (): object {
  const [asyncId = Symbol('id'), triggerId = Symbol('trigger')] = Object.getOwnPropertySymbols(new AsyncResource('fastify-llm-gateway'))
  // Ids come from an array of floats; a whole number here would make another form.
  return { [asyncId]: 0.5, [triggerId]: 0.5, callback: tickForm, args: undefined }
}
