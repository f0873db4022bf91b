import { executionAsyncResource } from 'node:async_hooks'
import { nextTick } from 'node:process'

/**
 * One of the objects that `process.nextTick` queues. If none is alive during a full collection, as in the pauses of a program that has
 * just started, V8 drops their hidden class and never again optimizes `nextTick`: a tick then takes 0.5 to 1.3 us instead of 0.1, and a
 * request has some ten (docs/performance.md). Which fields they have differs between versions of Node. Made by the import, as it also
 * keeps the asynchronous context that it was made in.
 */
export const queuedTick = new Promise<object>((resolve) => nextTick(() => resolve(executionAsyncResource())))
