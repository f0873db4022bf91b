/** Providers for a new configuration: address, and the variable from which their own libraries read a key. */
import { anthropic } from './family-anthropic.js'
import { gemini } from './family-gemini.js'
import { openai } from './family-openai.js'
import { protocolsOf, type ProtocolName } from './list.js'
import type { Family } from './types.js'

export interface Provider {
  /** Name of its upstream. */
  readonly name: string
  readonly url: string
  /** The first one that is set counts. */
  readonly variables: readonly [string, ...string[]]
  readonly protocols: readonly ProtocolName[]
}

function provider (family: Family, url: string, ...variables: Provider['variables']): Provider {
  return { name: family.name, url, variables, protocols: protocolsOf(family) }
}

export const providers: readonly Provider[] = [
  provider(openai, 'https://api.openai.com', 'OPENAI_API_KEY'),
  provider(anthropic, 'https://api.anthropic.com', 'ANTHROPIC_API_KEY'),
  provider(gemini, 'https://generativelanguage.googleapis.com', 'GEMINI_API_KEY', 'GOOGLE_API_KEY'),
]
