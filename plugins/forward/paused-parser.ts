import { Socket } from 'node:net'

/**
 * undici 7 assumes that no reply is paused when its connection ends (nodejs/undici#5360). If one is, it throws in a listener of the socket,
 * which ends the process. This happens with upstreams that close the connection after each reply. A connection that ended has delivered
 * everything, so the rest of its reply is let through. One that was reset has not, even if the reply has no declared length.
 *
 * It is done by listeners of the socket: a property added to a parser would change its hidden class in V8, and slow each request down.
 */
export function endPausedReplies (client: unknown): void {
  const socket: unknown = part(client, 'socket')
  const parser = part(socket, 'parser')
  if (!(socket instanceof Socket) || typeof Reflect.get(parser, 'resume') !== 'function') return
  socket.prependListener('end', () => {
    if (Reflect.get(parser, 'paused') === true) letThrough(Object(parser))
  })
  // With this, undici does not take the end of the connection for that of the reply.
  const broken = (): void => { Reflect.set(parser, 'shouldKeepAlive', true) }
  socket.prependListener('error', broken)
  socket.prependListener('close', broken)
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

/** A part that undici keeps under a symbol of its own. */
function part (owner: unknown, name: string): object {
  const symbol = Object.getOwnPropertySymbols(Object(owner)).find(({ description }) => description === name)
  return Object(symbol === undefined ? undefined : Reflect.get(Object(owner), symbol))
}
