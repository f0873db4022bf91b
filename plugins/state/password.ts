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

interface Login {
  readonly url?: string | undefined
  readonly password?: PasswordFile
}

interface Logins extends Login {
  readonly sentinel?: Login
  readonly usageStore?: Login
}

/** `LLM_GATEWAY_OPTION` errors, one for each address and password that cannot be used. */
export function wrongLogins ({ sentinel, usageStore, ...state }: Logins): unknown[] {
  const all = Object.entries<Login | undefined>({ state, 'state.sentinel': sentinel, 'state.usageStore': usageStore })
  return all.flatMap(([option, given]) => [
    ...given?.url === undefined ? [] : thrownBy(() => checkAddress(`${option}.url`, String(given.url))),
    ...thrownBy(() => readPassword(`${option}.password`, given?.password)),
  ])
}

function thrownBy (check: () => unknown): unknown[] {
  try {
    check()
    return []
  } catch (error) {
    return [error]
  }
}

/** Checked here, because the client's own error names neither the option nor what is wrong. */
function checkAddress (option: string, address: string): void {
  try {
    // The address of a PostgreSQL socket has no host. The PostgreSQL client accepts a percent sign that stands for itself.
    const { username, password, protocol } = new URL(address.replace('@/', '@socket/'))
    if (protocol.startsWith('redis')) decodeURIComponent(username + password)
  } catch {
    throw new OptionError(option, 'cannot be read: in a name or password, all but letters and digits is percent-encoded, such as # as %23')
  }
}

/** The address with the password in it, whatever it contains: the setter does not encode a percent sign. */
export function withPassword (address: string, password: Password | null): string {
  if (password === null) return address
  const url = new URL(address)
  url.password = encodeURIComponent(password())
  return url.href
}
