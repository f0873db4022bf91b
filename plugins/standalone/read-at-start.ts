/** What the process reads of a configuration only once: changes need a restart. */
import { isDeepStrictEqual } from 'node:util'
import type { GatewayConfig } from './config-types.js'

/** Whole sections. Of `overload` only one option, which belongs to the port and not to an app. */
const sections = ['listen', 'state', 'metrics', 'console', 'log'] as const

function readAtStart (config: GatewayConfig): ReadonlyArray<readonly [name: string, value: unknown]> {
  const { maxConnections } = config.overload || {}
  return [...sections.map((name) => [name, config[name]] as const), ['overload.maxConnections', maxConnections]]
}

/** Names of what differs from the configuration of the start. */
export function waitsForRestart (config: GatewayConfig, first: GatewayConfig): string[] {
  const before = new Map(readAtStart(first))
  return readAtStart(config).flatMap(([name, now]) => isDeepStrictEqual(now, before.get(name)) ? [] : [name])
}

/** The configuration that an app may serve: those sections as they were at the start, present or not, and all others as they are now. */
export function asStarted (config: GatewayConfig, first: GatewayConfig): GatewayConfig {
  const served = { ...config }
  for (const name of sections) {
    if (first[name] === undefined) Reflect.deleteProperty(served, name)
    else Reflect.set(served, name, first[name])
  }
  return served
}
