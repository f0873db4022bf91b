import { isIP } from 'node:net'
import { checkHosts } from '../core/door/own-host.js'
import { checkOptions, OptionError } from '../core/config/options.js'

interface ConsoleAddress {
  /** 0 for any free port. */
  port: number
  /**
   * A host name or an address of this machine.
   * @defaultValue the loopback interface
   */
  host?: string
}

export interface ConsoleOptions {
  /**
   * Serve the page at this path of the app itself, for everybody who can reach the app.
   * @defaultValue none
   */
  path?: string
  /**
   * Serve it on a listener of its own.
   * @defaultValue none
   */
  listen?: ConsoleAddress
  /**
   * Host names under which it may be opened, besides addresses and names without a dot.
   * @defaultValue with `listen` none but its host, at a `path` alone any
   */
  hosts?: readonly string[]
}

/** The host names that the page answers to, beside all addresses; null for any: what is in front of the app decides who reaches it. */
export function hostsOf ({ listen, hosts }: ConsoleOptions): readonly string[] | null {
  if (listen === undefined) return hosts ?? null
  const { host = '' } = listen
  return [...hosts ?? [], ...host === '' || isIP(host) !== 0 ? [] : [host]]
}

/** Throws `LLM_GATEWAY_OPTION`. One of `path` and `listen` is required. */
export function checkConsoleOptions (options: ConsoleOptions): void {
  checkOptions('console', options, { 'a string': ['path'], 'an object': ['listen'], anything: ['hosts'] })
  const { path, listen, hosts } = options
  checkHosts('console.hosts', hosts)
  if (path !== undefined && !/^\/[^?#%]+$/.test(path)) {
    throw new OptionError('console.path', 'must begin with a slash and go on, without ?, # and %')
  }
  if (listen !== undefined) checkOptions('console.listen', listen, { 'a whole number of at least 0': ['port'], 'a string': ['host'] })
  if (path === undefined && listen?.port === undefined) throw new OptionError('console', 'needs a path or listen.port')
}
