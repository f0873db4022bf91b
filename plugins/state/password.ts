/** The password of a store in a file of its own: read for each new connection, so that another one needs no restart. */
import { checkOptions, OptionError } from '../core/config/options.js'
import { readPlainFileNow } from '../core/config/plain-file.js'

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
  const read = (): void => { last = readPlainFileNow(file).trim() || last }
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

interface Login {
  readonly url?: string | undefined
  readonly password?: PasswordFile
}

interface Logins extends Login {
  readonly sentinel?: Login
  readonly usageStore?: Login
}

/** `LLM_GATEWAY_OPTION` for each address and password that cannot be used. */
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

/** What its client says of such an address names neither the option nor what is wrong. */
function checkAddress (option: string, address: string): void {
  try {
    // A PostgreSQL behind a socket has no host, and a percent sign that stands for itself is one to its client.
    const { username, password, protocol } = new URL(address.replace('@/', '@socket/'))
    if (protocol.startsWith('redis')) decodeURIComponent(username + password)
  } catch {
    throw new OptionError(option, 'cannot be read: in a name or password, all but letters and digits is percent-encoded, such as # as %23')
  }
}

/** The address with the password in it, whatever that holds: the setter itself leaves a percent sign as it is. */
export function withPassword (address: string, password: Password | null): string {
  if (password === null) return address
  const url = new URL(address)
  url.password = encodeURIComponent(password())
  return url.href
}
