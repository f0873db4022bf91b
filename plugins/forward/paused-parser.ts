import { errors } from './undici.js'

/**
 * undici 7 takes for granted that nobody holds a reply back whose connection ends (nodejs/undici#5360): what it throws otherwise, on an
 * event of the socket, ends the process. It matters where the upstream closes after each reply. A connection that ended has given all that
 * it will, so the rest is let through; one that was reset has not, also where a reply has no length.
 */
export function endPausedReplies (client: unknown): void {
  const socket = part(client, 'socket')
  const parser = part(socket, 'parser')
  const finish: unknown = Reflect.get(parser, 'finish')
  if (typeof finish !== 'function') return
  Object.assign(parser, {
    finish: (): unknown => {
      if (Reflect.get(socket, 'destroyed') === true) return new errors.SocketError('the connection was reset')
      if (Reflect.get(parser, 'paused') === true) letThrough(Object(parser))
      return Reflect.apply(finish, parser, [])
    },
  })
}

interface Parser {
  paused: boolean
  readonly ptr: unknown
  readonly llhttp: { readonly llhttp_resume: (ptr: unknown) => void }
  readonly resume: () => void
}

function letThrough (parser: Parser): void {
  parser.resume()
  // Nothing is left that could be held back.
  if (parser.paused) parser.llhttp.llhttp_resume(parser.ptr)
  parser.paused = false
}

/** What undici keeps under a symbol of its own. */
function part (owner: unknown, name: string): object {
  const symbol = Object.getOwnPropertySymbols(Object(owner)).find(({ description }) => description === name)
  return Object(symbol === undefined ? undefined : Reflect.get(Object(owner), symbol))
}
