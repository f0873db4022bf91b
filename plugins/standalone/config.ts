/** The configuration file: found, read, filled from the environment, checked. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { PriceError, type PlacedProblem } from '../costs/price-error.js'
import { readPlainFileNow } from '../core/config/plain-file.js'
import { joinPath } from '../core/config/join-path.js'
import { besideFile } from './beside-file.js'
import { crossCheck } from './config-checks.js'
import { ConfigError, problemOfOption, type Problem } from './config-error.js'
import { withLines } from './config-lines.js'
import { formProblems, isConfig } from './config-schema.js'
import type { GatewayConfig } from './config-types.js'
import { parseYaml, type Environment } from './config-yaml.js'
import { rightPart } from './right-part.js'

const packageFolder = dirname(createRequire(import.meta.url).resolve('fastify-llm-gateway/package.json'))

/** The file that is used if none is named: the demo, which needs no provider and no key. */
export const demoFile = join(packageFolder, 'examples/demo/gateway.yaml')

/** `--config`, then `LLM_GATEWAY_CONFIG`, then the demo. */
export function configFile (named: string | undefined, env: Environment): string {
  return named ?? (env['LLM_GATEWAY_CONFIG'] || demoFile)
}

/** The valid part of a configuration, and all mistakes; without any, `config` is all of it. */
export interface Reading {
  readonly config: GatewayConfig
  readonly problems: readonly Problem[]
  /** Those mistakes that are still in `config`: their form is right. */
  readonly meant: readonly Problem[]
  /** Sections of which nothing is valid. */
  readonly wrong: ReadonlySet<string>
}

/** Throws ConfigError with every problem found; each names its path in the file. `text`: of the file, if it was read before. */
export function loadConfig (file: string, env: Environment, text = readText(file)): GatewayConfig {
  return besideFile(parseConfig(text, env), file)
}

export function parseConfig (text: string, env: Environment): GatewayConfig {
  const { config, problems } = readConfig(text, env)
  if (problems.length > 0) throw new ConfigError(problems)
  return config
}

/** As `loadConfig`, but returns the valid part beside the mistakes. Throws ConfigError if nothing is valid. */
export function readFile (file: string, env: Environment): Reading {
  const reading = readConfig(readText(file), env)
  return { ...reading, config: besideFile(reading.config, file) }
}

function readConfig (text: string, env: Environment): Reading {
  try {
    const { value, problems: unset, filled } = parseYaml(text, env)
    if (value === null) throw new ConfigError([{ path: '', message: 'is empty: llm-gateway init writes one to begin with' }])
    const form = formProblems(value, filled)
    const { rest: config, wrong } = rightPart(value, form)
    if (!isConfig(config)) throw new ConfigError(form)
    const meant = [...unset, ...without([...form, ...unset], crossCheck(config, wrong))]
    const problems = [...without(unset, form), ...meant]
    return { config, wrong, meant, problems: withLines(new ConfigError(problems), text).problems }
  } catch (error) {
    // The parser throws, too: aliases are resolved late.
    throw withLines(error instanceof ConfigError ? error : new ConfigError([{ path: '', message: String(error) }]), text)
  }
}

/** Those whose places none of the others has. */
function without (others: readonly Problem[], problems: readonly Problem[]): Problem[] {
  const paths = new Set(others.map(({ path }) => path))
  return problems.filter(({ path }) => !paths.has(path))
}

/** The same problems with their lines in a file, if it still exists. */
export function withFileLines (error: ConfigError, file: string): ConfigError {
  try {
    return withLines(error, readPlainFileNow(file))
  } catch {
    return error
  }
}

/** Why a configuration is refused, as lines for the log. */
export function refusalLines (error: unknown, file: string): string[] {
  return configErrorOf(error, file)?.toLines(file) ?? String(Object(error).message).split('\n')
}

/** The mistakes that a plugin, or the file itself, reports; null for any other error. */
export function configErrorOf (error: unknown, file: string): ConfigError | null {
  if (error instanceof ConfigError) return error
  const problem = problemOfOption(error)
  const problems = problem === null ? inlinePriceProblems(error) : [problem]
  return problems.length === 0 ? null : withFileLines(new ConfigError(problems), file)
}

/** Mistakes of prices in the configuration itself; empty if a price list in another file is wrong, too. */
function inlinePriceProblems (error: unknown): Problem[] {
  const problems = error instanceof PriceError ? error.problems.map(inlinePriceProblem) : []
  return problems.every((problem) => problem !== null) ? problems : []
}

/** Null for a mistake in a price list of its own file. */
export function inlinePriceProblem ({ place, path, message }: PlacedProblem): Problem | null {
  return /^prices[.](currency|models)$/.test(place) ? { path: path === '' ? place : joinPath(place, path), message } : null
}

const whyUnread: Readonly<Record<string, string>> = {
  ENOENT: ': it is not there',
  NOT_A_FILE: ': it has to be a plain file, because a gateway that runs reads it again',
  TOO_LONG: ': it is longer than 8 MiB',
}

/** Throws ConfigError if the file cannot be read. A command that reads it once may get it through a pipe. */
function readText (file: string, read = (path: string): string => readFileSync(path, 'utf8')): string {
  try {
    return read(file)
  } catch (error) {
    const code = String(Object(error).code)
    throw new ConfigError([{ path: '', message: `the file cannot be read (${code})${whyUnread[code] ?? ''}` }])
  }
}

/** The same for files that are read again while callers are served: only plain files of bounded size. */
export function readServedText (file: string): string {
  return readText(file, readPlainFileNow)
}
