/** Tries a configuration: the app is built as at start, but opens no port, no upstream and no store. */
import { inWords, PriceError } from '../costs/price-error.js'
import { wrongLogins } from '../state/options.js'
import { missingPeers } from '../state/peer.js'
import { problemOfOption, type Problem } from './config-error.js'
import { isConfig } from './config-schema.js'
import type { GatewayConfig } from './config-types.js'
import { inlinePriceProblem, type Reading } from './config.js'
import { stateConfig } from './config-values.js'
import { createGateway } from './gateway.js'
import { removeField, rightPart } from './right-part.js'

/** What other sections refer to: if one of these is wrong as a whole, the others cannot be checked. */
const named = ['upstreams', 'pools', 'groups']
const naming = [...named, 'keys', 'usage']

/**
 * Every mistake that a plugin finds in the valid part. Each plugin reports its first one, so that what is wrong is removed and the rest is
 * tried again.
 */
export async function tryOut ({ config, wrong, problems, meant }: Reading): Promise<Problem[]> {
  const [found, seen]: [Problem[], Problem[]] = [[], []]
  const unknown = named.some((section) => wrong.has(section)) ? naming : []
  let rest: unknown = rightPart(config, [...meant, ...unknown.map((path) => ({ path, message: '' }))]).rest
  while (isConfig(rest)) {
    const news = await mistakesOf(rest)
    if (news.every(({ path, message }) => seen.some((known) => known.path === path && known.message === message))) break
    found.push(...news.filter(({ path }) => path === '' || [...problems, ...seen].every((known) => !follows(path, known))))
    seen.push(...news)
    rest = without(rest, news)
  }
  return found
}

/** A mistake of a field that is known already, or that follows from its removal, is not reported again. */
function follows (path: string, known: Problem): boolean {
  return known.path === path || known.path.startsWith(`${path}.`)
}

/** All mistakes of packages and passwords, or else the first one of a plugin, or all of the price lists. */
export async function mistakesOf (config: GatewayConfig): Promise<Problem[]> {
  const state = stateConfig(config)
  const early = [...await missingPeers(state), ...wrongLogins(state)]
  if (early.length > 0) return early.map(problemOf)
  try {
    // Beside a gateway that runs its metrics would be told as well.
    const { app } = await createGateway({ ...config, metrics: { ...config.metrics, openTelemetry: false } }, {
      simulator: null, state: null, cells: {}, consolePath: '/console', life: { draining: false }, logStream: { write () {} },
    })
    await app.close()
    return []
  } catch (error) {
    if (error instanceof PriceError) {
      return error.problems.map((problem) => inlinePriceProblem(problem) ?? { path: 'prices.files', message: inWords(problem) })
    }
    return [problemOf(error)]
  }
}

function problemOf (error: unknown): Problem {
  return problemOfOption(error) ?? { path: '', message: String(Object(error).message) }
}

/** The configuration without the wrong field, or without its entry or section if the rest needs the field. */
function without (config: GatewayConfig, problems: readonly Problem[]): unknown {
  const copy = structuredClone(config)
  const isSpared = problems.every(({ path }) => !path.startsWith('prices.') && removeField(copy, path, '')) && isConfig(copy)
  return isSpared ? copy : rightPart(config, problems).rest
}
