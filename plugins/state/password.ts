/** The password of a store in a file of its own: read for each new connection, so that another one needs no restart. */
import { readFileSync } from 'node:fs'
import { checkOptions, OptionError } from '../core/options.js'

export interface PasswordFile {
  /** Its path. */
  readonly file: string
}

/** The password as the file has it now, or the last one while it cannot be read. */
export type Password = () => string

/** Null where there is none. Throws `LLM_GATEWAY_OPTION` for a file that cannot be read or holds nothing. */
export function readPassword (option: string, given: PasswordFile | undefined): Password | null {
  if (given === undefined) return null
  checkOptions(option, given, { file: 'a string' })
  const { file } = given
  let last = ''
  const read = (): void => { last = readFileSync(file, 'utf8').trim() || last }
  try {
    read()
  } catch (error) {
    throw new OptionError(`${option}.file`, `cannot be read: ${String(Reflect.get(Object(error), 'code'))}`)
  }
  if (last === '') throw new OptionError(`${option}.file`, 'is empty')
  return () => {
    try {
      read()
    } catch {}
    return last
  }
}

interface Passwords {
  readonly password?: PasswordFile
  readonly usageStore?: { readonly password?: PasswordFile }
}

/** `LLM_GATEWAY_OPTION` for each that cannot be used. */
export function wrongPasswords ({ password, usageStore }: Passwords): unknown[] {
  return Object.entries({ 'state.password': password, 'state.usageStore.password': usageStore?.password }).flatMap(([option, given]) => {
    try {
      readPassword(option, given)
      return []
    } catch (error) {
      return [error]
    }
  })
}

/** The address with the password in it. */
export function withPassword (address: string, password: Password | null): string {
  if (password === null) return address
  const url = new URL(address)
  url.password = password()
  return url.href
}
