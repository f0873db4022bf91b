import type { FamilyName, Options } from './options.js'

/** What a check requires; without it the check does not apply. */
export type Need = FamilyName | 'far side' | 'metrics' | 'mount prefix' | 'several keys' | 'spent key'

interface Source {
  /** Where the command line gives it. */
  readonly from: string
  readonly isMet: (options: Options) => boolean
}

export const needs: Readonly<Record<Need, Source>> = {
  openai: { from: '--key-openai', isMet: ({ keys }) => keys.openai !== '' },
  anthropic: { from: '--key-anthropic', isMet: ({ keys }) => keys.anthropic !== '' },
  gemini: { from: '--key-gemini', isMet: ({ keys }) => keys.gemini !== '' },
  'far side': { from: '--upstream-port', isMet: ({ upstreamPort }) => upstreamPort !== null },
  metrics: { from: '--metrics-url', isMet: ({ metricsUrl }) => metricsUrl !== '' },
  'mount prefix': { from: 'a path in --base-url', isMet: ({ baseUrl }) => new URL(baseUrl).pathname !== '/' },
  'several keys': {
    from: 'another key for each family', isMet: ({ keys }) => new Set(Object.values(keys)).size === Object.keys(keys).length,
  },
  'spent key': { from: '--key-spent', isMet: ({ spentKey }) => spentKey !== '' },
}

/** A key of each family. */
export const everyFamily = ['openai', 'anthropic', 'gemini'] as const
