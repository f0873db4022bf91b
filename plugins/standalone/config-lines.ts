import * as yaml from 'yaml'
import { yamlLines } from '../core/config/yaml-text.js'
import { ConfigError } from './config-error.js'
import { hideVariables } from './config-yaml.js'

/** The same problems, each with the line of its path in the text. */
export function withLines ({ problems }: ConfigError, text: string): ConfigError {
  // For this the text is parsed once more.
  const lineOf = problems.length === 0 ? () => undefined : yamlLines(yaml, hideVariables(text))
  return new ConfigError(problems.map((problem) => {
    const line = lineOf(problem.path)
    return line === undefined ? problem : { ...problem, line }
  }))
}
