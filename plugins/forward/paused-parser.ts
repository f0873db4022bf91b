import { Socket } from 'node:net'

/**
 * undici 7 takes for granted that nobody holds a reply back whose connection ends (nodejs/undici#5360): what it throws otherwise, on an
 * event of the socket, ends the process. It matters where the upstream closes after each reply. A connection that ended has given all that
 * it will, so the rest is let through; one that was reset has not, also where a reply has no length.
 *
 * By listeners of the socket, as what is set on a parser costs each request: V8 knows parsers by their form.
 */
export function endPausedReplies (client: unknown): void {
  const socket: unknown = part(client, 'socket')
  const parser = part(socket, 'parser')
  if (!(socket instanceof Socket) || typeof Reflect.get(parser, 'resume') !== 'function') return
  socket.prependListener('end', () => {
    if (Reflect.get(parser, 'paused') === true) letThrough(Object(parser))
  })
  // It takes no end for the end of a reply then.
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

/** What undici keeps under a symbol of its own. */
function part (owner: unknown, name: string): object {
  const symbol = Object.getOwnPropertySymbols(Object(owner)).find(({ description }) => description === name)
  return Object(symbol === undefined ? undefined : Reflect.get(Object(owner), symbol))
}
