/** The password of a store in a file of its own: read for each new connection, so that a new password needs no restart. */
import { checkOptions, OptionError } from '../core/config/options.js'
import { readPlainFileNow } from '../core/config/plain-file.js'

export interface PasswordFile {
  /** Path of the file. */
  readonly file: string
}

/** Returns the password that the file has now, or the last one while it cannot be read. */
export type Password = () => string

/** Null if none is configured. Throws `LLM_GATEWAY_OPTION` if the file cannot be read or is empty. */
export function readPassword (option: string, given: PasswordFile | undefined): Password | null {
  if (given === undefined) return null
  checkOptions(option, given, { 'a string': ['file'] })
  const { file } = given
  let last = ''
  const read = (): void => { last = readPlainFileNow(file).trim() || last }
  try {
    read()
  } catch (error) {
    throw new OptionError(`${option}.file`, `cannot be read: ${String(Object(error).code)}`)
  }
  if (last === '') throw new OptionError(`${option}.file`, 'is empty')
  return () => {
    try {
      read()
    } catch {}
    return last
  }
}

/** The address with the password in it, whatever it contains: the setter does not encode a percent sign. */
export function withPassword (address: string, password: Password | null): string {
  if (password === null) return address
  const url = new URL(address)
  url.password = encodeURIComponent(password())
  return url.href
}
