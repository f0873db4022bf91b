import { checkOptions, OptionError } from '../core/config/options.js'
import { isObject } from '../core/body/json-object.js'

export interface UsageOptions {
  /**
   * Asks for the usage of streamed chats whose caller did not ask, and removes the event that brings it from the reply. For all
   * upstreams, or by upstream name.
   * @defaultValue true, also for an upstream that is not named
   */
  includeUsage?: boolean | Readonly<Record<string, boolean>>
}

/** Whether to ask the upstream of this name for its usage; null for the host's own mount. */
export type MayAsk = (upstream: string | null) => boolean

/** Throws `LLM_GATEWAY_OPTION`. */
export function readOptions (options: UsageOptions): MayAsk {
  checkOptions('usage', options, { anything: ['includeUsage'] })
  const { includeUsage = true } = options
  if (typeof includeUsage === 'boolean') return () => includeUsage
  if (!isObject(includeUsage)) throw new OptionError('usage.includeUsage', 'must be a boolean, or one for each upstream name')
  for (const [name, value] of Object.entries(includeUsage)) {
    if (typeof value !== 'boolean') throw new OptionError(`usage.includeUsage.${name}`, 'must be a boolean')
  }
  return (upstream) => upstream === null || (includeUsage[upstream] ?? true)
}
