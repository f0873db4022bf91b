import { once } from 'node:events'
import { Server as HttpServer } from 'node:http'
import type { Server } from 'node:net'

/** Listens on a free port until the scope ends, and returns the address. */
export async function listening (scope: { teardown: (end: () => void) => void }, server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  scope.teardown(() => {
    server.close()
    if (server instanceof HttpServer) server.closeAllConnections()
  })
  await once(server, 'listening')
  return `http://127.0.0.1:${String(Object(server.address()).port)}`
}
