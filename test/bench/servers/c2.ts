/** The floor of Node: `node:http` and `undici.dispatch`, the body collected, the reply written straight through. */
import { createServer, type ServerResponse } from 'node:http'
import { Pool, type Dispatcher } from 'undici'
import { portOf, serve, settings } from './serve.js'

const pool = new Pool(settings.upstream, { connections: settings.connections, pipelining: 1 })

function toReply (res: ServerResponse): Dispatcher.DispatchHandler {
  return {
    onRequestStart () {},
    onResponseStart (controller, status, headers) {
      res.on('drain', () => controller.resume())
      delete headers['transfer-encoding']
      res.writeHead(status, headers)
    },
    onResponseData (controller, chunk) {
      if (!res.write(chunk)) controller.pause()
    },
    onResponseEnd () {
      res.end()
    },
    onResponseError (_controller, error) {
      res.destroy(error)
    },
  }
}

const server = createServer({ keepAliveTimeout: 72_000 }, (req, res) => {
  const parts: Buffer[] = []
  req.on('data', (part: Buffer) => parts.push(part))
  req.on('end', () => {
    const body = parts.length === 1 ? parts[0] : Buffer.concat(parts)
    const { host: _host, connection: _connection, ...headers } = req.headers
    pool.dispatch({ path: req.url ?? '/', method: 'POST', headers, body: body ?? null }, toReply(res))
  })
})

server.listen(0, '127.0.0.1', 4096, () => serve(portOf(server.address())))
