import { parseArgs } from 'node:util'
import { didYouMean } from '../plugins/core/config/did-you-mean.js'
import { UsageError } from './io.js'

/** The option of all commands. */
export const configOption = { config: { type: 'string' } } as const

/** As `parseArgs`, with messages that suggest what was probably meant. Throws UsageError. */
export const readArgs: typeof parseArgs = (given) => {
  try {
    return parseArgs(given)
  } catch (error) {
    throw new UsageError(inWords(String(Object(error).message), Object.keys(Object(given?.options))))
  }
}

function inWords (message: string, options: readonly string[]): string {
  const [unknown, option = ''] = /^Unknown option '--([^']*)'/.exec(message) ?? []
  if (unknown !== undefined) return unknown + didYouMean(option, options).replace('mean ', 'mean --')
  const [file] = /(?<=^Unexpected argument ')[^']*\.ya?ml(?=')/.exec(message) ?? []
  return file === undefined ? message : `${message}; did you mean --config ${file}?`
}
