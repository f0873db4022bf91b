/** The command line of `npm run bench`. */
import { parseArgs } from 'node:util'
import type { Mode, Peer } from './session.js'

export const usageText = `npm run bench -- [options]

  --quick            fewer and shorter windows: about 2 minutes instead of under 15
  --only a,b         only these suites
  --json FILE        write the values under their names to FILE
  --peer NAME=URL    another gateway that runs already, on the work of the suite "small"; may be repeated.
                     It must forward to the mock upstream: see --upstream-port
  --upstream-port N  port of the mock upstream, for peers (default: any free one)
  --profile NAME     where the processor time of a target goes, such as chain, dropin, e, chain:bench-events or
                     chain:refused; two by comma, what the first spends beyond the second
  --micro            micro-benchmarks of the parts instead
  --growth           cost as keys, groups, tenants, budgets, series, bodies, streams and workers grow instead`

export interface Arguments {
  readonly mode: Mode
  readonly kind: 'goals' | 'micro' | 'growth'
  readonly only: readonly string[]
  readonly profile: string | null
  readonly json: string | null
  readonly peers: readonly Peer[]
  readonly upstreamPort: number
}

function peer (text: string): Peer {
  const at = text.indexOf('=')
  if (at < 1) throw new Error(`--peer takes NAME=URL, not "${text}"`)
  return { name: text.slice(0, at), url: new URL(text.slice(at + 1)).href }
}

/** Null where help was asked for. */
export function readArguments (argv: readonly string[]): Arguments | null {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string', default: '' },
      json: { type: 'string' },
      peer: { type: 'string', multiple: true, default: [] },
      'upstream-port': { type: 'string', default: '0' },
      profile: { type: 'string' },
      micro: { type: 'boolean', default: false },
      growth: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return null
  return {
    mode: values.quick ? 'quick' : 'full',
    kind: values.micro ? 'micro' : values.growth ? 'growth' : 'goals',
    only: values.only.split(',').filter(Boolean),
    profile: values.profile ?? null,
    json: values.json ?? null,
    peers: values.peer.map(peer),
    upstreamPort: Number(values['upstream-port']),
  }
}
