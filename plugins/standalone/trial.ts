/** A configuration tried out: the app is built as a start would, but opens no port, no upstream and no store. */
import { joinPath, problemOfOption, type Problem } from './config-error.js'
import type { GatewayConfig } from './config-types.js'
import { stateConfig } from './config.js'
import { createGateway } from './gateway.js'
import { checkPasswords } from '../state/password.js'
import { checkPeers } from '../state/peer.js'

/**
 * Every mistake that a part of the gateway finds. Each part tells its first one, so that what is wrong is taken out and the rest
 * is tried again. Rejects with what is no mistake of an option, such as a price list that cannot be read.
 */
export async function tryOut (config: GatewayConfig): Promise<Problem[]> {
  await checkPeers(stateConfig(config))
  const problems: Problem[] = []
  for (let rest: GatewayConfig | null = config; rest !== null;) {
    const problem = await firstProblem(rest)
    if (problem === null || problems.some(({ path }) => path === problem.path)) break
    problems.push(problem)
    rest = without(rest, problem.path)
  }
  return problems
}

async function firstProblem (config: GatewayConfig): Promise<Problem | null> {
  try {
    checkPasswords(stateConfig(config))
    const { app } = await createGateway(config, {
      simulator: null, state: null, cells: {}, consolePath: '/console', life: { draining: false }, logStream: { write () {} },
    })
    await app.close()
    return null
  } catch (error) {
    const problem = problemOfOption(error)
    if (problem === null) throw error
    return problem
  }
}

/**
 * The same without the field at a path; null where that is no field of an object, as another one would move into the place of an element.
 */
function without (config: GatewayConfig, path: string): GatewayConfig | null {
  const copy = structuredClone(config)
  return remove(copy, path, '') ? copy : null
}

function remove (value: unknown, path: string, at: string): boolean {
  for (const [name, inner] of Object.entries(Object(value))) {
    const place = joinPath(at, Array.isArray(value) ? Number(name) : name)
    if (place === path) return !Array.isArray(value) && Reflect.deleteProperty(Object(value), name)
    if (path.startsWith(`${place}.`) || path.startsWith(`${place}[`)) return remove(inner, path, place)
  }
  return false
}
