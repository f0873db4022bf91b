import { checkOptions, OptionError } from '../core/config/options.js'

export interface OverloadOptions {
  /**
   * Delay of the event loop in milliseconds, averaged over half a second, above which a growing share of requests is refused until it is
   * lower again. 0 turns it off.
   * @defaultValue 200
   */
  maxLoopDelayMs?: number
  /**
   * Percentage of the heap in use above which every request is refused.
   * @defaultValue 92
   */
  maxHeapPercent?: number
  /**
   * Maximum number of callers' connections. A model request on a further one is refused, and the connection is closed.
   * @defaultValue any number
   */
  maxConnections?: number
  /**
   * Maximum number of model requests that run at the same time. The last fifth is kept for keys that have less than an equal share.
   * @defaultValue any number
   */
  maxActive?: number
  /**
   * Maximum number of bytes that request bodies of more than 256 KiB may take together, from their arrival to the end of their requests, in
   * each process. A single one may be larger.
   * @defaultValue a quarter of the memory of the machine or container; of `listen.workers` each has its part of that
   */
  maxHeldBytes?: number
  /**
   * Maximum number of requests that wait for a connection to their upstream.
   * @defaultValue 1,024
   */
  maxQueued?: number
  /**
   * How long each may wait, in milliseconds.
   * @defaultValue 2,000
   */
  queueMs?: number
}

/** Throws `LLM_GATEWAY_OPTION` naming the option. */
export function checkOverloadOptions (options: OverloadOptions): void {
  checkOptions('overload', options, {
    'a whole number of at least 0': ['maxLoopDelayMs', 'maxQueued'],
    'a whole number of at least 1': ['maxHeapPercent', 'maxConnections', 'maxActive', 'maxHeldBytes'],
    'a whole number of 1 to 2147483647': ['queueMs'],
  })
  if (Number(options.maxHeapPercent) > 100) throw new OptionError('overload.maxHeapPercent', 'must be at most 100')
}
