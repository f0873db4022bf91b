/** The configuration file: found, read, filled from the environment, checked. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { availableParallelism } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { PriceError } from '../costs/price-error.js'
import type { StateConfig } from '../state/types.js'
import { crossCheck } from './config-checks.js'
import { ConfigError, joinPath, problemOfOption, type Problem } from './config-error.js'
import { withLines } from './config-lines.js'
import { formProblems, isConfig } from './config-schema.js'
import type { GatewayConfig } from './config-types.js'
import { parseYaml, type Environment } from './config-yaml.js'

const packageFolder = dirname(createRequire(import.meta.url).resolve('fastify-llm-gateway/package.json'))

/** The file that is used when none is named: the demo, which needs no provider and no key. */
export const demoFile = join(packageFolder, 'examples/demo/gateway.yaml')

/** `--config`, then `LLM_GATEWAY_CONFIG`, then the demo. */
export function configFile (named: string | undefined, env: Environment): string {
  return named ?? (env['LLM_GATEWAY_CONFIG'] || demoFile)
}

/** Throws ConfigError with every problem found; each names its path in the file. `text`: of the file, where it was read before. */
export function loadConfig (file: string, env: Environment, text = readText(file)): GatewayConfig {
  const config = parseConfig(text, env)
  const { prices } = config
  // Beside the file that names them, wherever the process was started.
  return prices?.files === undefined
    ? config
    : { ...config, prices: { ...prices, files: prices.files.map((name) => resolve(dirname(file), name)) } }
}

export function parseConfig (text: string, env: Environment): GatewayConfig {
  try {
    const { value, problems: unset, filled } = parseYaml(text, env)
    const isUnset = (path: string): boolean => unset.some((problem) => problem.path === path)
    const form = formProblems(value, filled)
    const wrong = new Set(form.map(({ path }) => sectionOf(path)))
    const config = standIn(value, wrong, form)
    const problems = [...unset, ...[...form, ...crossCheck(config, wrong)].filter(({ path }) => !isUnset(path))]
    if (problems.length > 0) throw new ConfigError(problems)
    return config
  } catch (error) {
    // The parser throws, too: what an alias stands for is looked up late.
    throw withLines(error instanceof ConfigError ? error : new ConfigError([{ path: '', message: String(error) }]), text)
  }
}

function sectionOf (path: string): string {
  return path.replace(/[.[].*$/s, '')
}

/**
 * The sections that are right, so that they can be held against each other, with stand-ins for those that must be there. Throws
 * ConfigError.
 */
function standIn (value: unknown, wrong: ReadonlySet<string>, form: readonly Problem[]): GatewayConfig {
  const right = Object.fromEntries(Object.entries(Object(value)).filter(([section]) => !wrong.has(section)))
  const config: unknown = wrong.size === 0
    ? value
    : { upstreams: { none: { simulate: true } }, groups: { none: { protocols: [] } }, ...right }
  if (!isConfig(config)) throw new ConfigError(form)
  return config
}

/** The same problems with their lines in a file. */
export function withFileLines (error: ConfigError, file: string): ConfigError {
  return withLines(error, readText(file))
}

/** What a part of the gateway, or the file itself, says is wrong; null for any other error. */
export function configErrorOf (error: unknown, file: string): ConfigError | null {
  if (error instanceof ConfigError) return error
  const problem = problemOfOption(error)
  const problems = problem === null ? inlinePriceProblems(error) : [problem]
  return problems.length === 0 ? null : withFileLines(new ConfigError(problems), file)
}

/** What is wrong with prices that stand in the configuration itself; empty where a price list of its own is wrong, too. */
function inlinePriceProblems (error: unknown): Problem[] {
  if (!(error instanceof PriceError) || error.problems.some(({ place }) => !/^prices[.](currency|models)$/.test(place))) return []
  return error.problems.map(({ place, path, message }) => ({ path: path === '' ? place : joinPath(place, path), message }))
}

/** Throws ConfigError where the file cannot be read. */
export function readText (file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new ConfigError([{ path: '', message: `the file cannot be read (${String(Reflect.get(Object(error), 'code'))})` }])
  }
}

export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** HOST and PORT of the environment win over the file. Throws ConfigError where PORT is no port. */
export function listenAddress (config: GatewayConfig, env: Environment): ListenAddress {
  const port = env['PORT'] ?? ''
  const wrong = port !== '' && !(/^\d{1,5}$/.test(port) && Number(port) <= 65_535)
  if (wrong) throw new ConfigError([{ path: '', message: 'environment variable PORT is not a port number' }])
  return {
    host: env['HOST'] || config.listen?.host || '127.0.0.1',
    port: port === '' ? config.listen?.port ?? 8080 : Number(port),
  }
}

/** Where state lives; in lmdb's files below the working folder when the file says nothing of it. */
export function stateConfig (config: GatewayConfig): StateConfig {
  return config.state ?? { engine: 'lmdb' }
}

/** Where the usage ledger of this host is. */
export function ledgerPath (config: GatewayConfig): string {
  return join(stateConfig(config).path ?? './data', 'ledger')
}

/** How many processes serve: `listen.workers`, or one for each core. */
export function workersOf ({ listen: { workers = 1 } = {} }: GatewayConfig): number {
  return workers === 'auto' ? availableParallelism() : workers
}
