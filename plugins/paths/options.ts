import { checkChoice, checkOptions, OptionError } from '../core/config/options.js'

export interface PathsOptions {
  /**
   * Path below which the model endpoints are served, such as `/llm`.
   * @defaultValue none
   */
  prefix?: string
  /**
   * What happens to a path that has a version segment (or the prefix) but is no known endpoint and no route of the host: `leave` it to the
   * host's 404, or `refuse` it with the native 404 of the caller's protocol.
   * @defaultValue `refuse`
   */
  unknown?: 'leave' | 'refuse'
}

/** Throws `LLM_GATEWAY_OPTION`, naming `plugin.option`. */
export function checkPathOptions (plugin: string, options: { readonly prefix?: unknown, readonly unknown?: unknown }): void {
  checkOptions(plugin, options, { anything: ['prefix', 'unknown'] })
  const { prefix = '', unknown } = options
  if (typeof prefix !== 'string' || !/^(?:\/[\w.~-]+)*\/?$/.test(prefix)) {
    throw new OptionError(`${plugin}.prefix`, 'must be a path such as /llm')
  }
  checkChoice(`${plugin}.unknown`, unknown, ['leave', 'refuse'])
}
