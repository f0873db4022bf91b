/** A configuration tried out: the app is built as a start would, but opens no port, no upstream and no store. */
import { inWords, PriceError } from '../costs/price-error.js'
import { checkPasswords } from '../state/password.js'
import { checkPeers } from '../state/peer.js'
import { joinPath, problemOfOption, type Problem } from './config-error.js'
import { isConfig } from './config-schema.js'
import type { GatewayConfig } from './config-types.js'
import { inlinePriceProblem, stateConfig, type Reading } from './config.js'
import { createGateway } from './gateway.js'
import { rightPart } from './right-part.js'

/** What others name: where one of these is wrong as a whole, nothing can be said of the others. */
const named = ['upstreams', 'pools', 'groups']
const naming = [...named, 'keys', 'usage']

/**
 * Every mistake that a part of the gateway finds in what is right by itself. Each part tells its first one, so that what is wrong is
 * taken out and the rest is tried again.
 */
export async function tryOut ({ config, problems }: Reading): Promise<Problem[]> {
  const found: Problem[] = []
  const { wrong } = rightPart(config, problems)
  const unknown = named.some((section) => wrong.has(section)) ? naming : []
  let rest: unknown = rightPart(config, [...problems, ...unknown.map((path) => ({ path, message: '' }))]).rest
  while (isConfig(rest)) {
    const news = await mistakesOf(rest)
    if (news.every(({ path, message }) => found.some((known) => known.path === path && known.message === message))) break
    found.push(...news)
    rest = without(rest, news)
  }
  return found
}

/** The first one of a part, or all of the price lists. */
async function mistakesOf (config: GatewayConfig): Promise<Problem[]> {
  try {
    await checkPeers(stateConfig(config))
    checkPasswords(stateConfig(config))
    const { app } = await createGateway(config, {
      simulator: null, state: null, cells: {}, consolePath: '/console', life: { draining: false }, logStream: { write () {} },
    })
    await app.close()
    return []
  } catch (error) {
    if (error instanceof PriceError) {
      return error.problems.map((problem) => inlinePriceProblem(problem) ?? { path: 'prices.files', message: inWords(problem) })
    }
    return [problemOfOption(error) ?? { path: '', message: String(Reflect.get(Object(error), 'message')) }]
  }
}

/** The same without the one field that is wrong, or without its entry or section where the rest needs it. */
function without (config: GatewayConfig, problems: readonly Problem[]): unknown {
  const copy = structuredClone(config)
  const isSpared = problems.every(({ path }) => !path.startsWith('prices.') && remove(copy, path, '')) && isConfig(copy)
  return isSpared ? copy : rightPart(config, problems).rest
}

function remove (value: unknown, path: string, at: string): boolean {
  for (const [name, inner] of Object.entries(Object(value))) {
    const place = joinPath(at, Array.isArray(value) ? Number(name) : name)
    if (place === path) return !Array.isArray(value) && Reflect.deleteProperty(Object(value), name)
    if (path.startsWith(`${place}.`) || path.startsWith(`${place}[`)) return remove(inner, path, place)
  }
  return false
}
