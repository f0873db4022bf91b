import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * A port of 127.0.0.1 that nothing listens on at this moment, below those that systems give to whoever asks for any: it is
 * still free when a program that takes its time to start, or to start again, comes to it. So is the one 10,000 above it,
 * which a Redis of a cluster takes, too. From 11,000, as `fetch` refuses 10,080.
 */
export async function freePort (): Promise<number> {
  for (;;) {
    const port = randomInt(11_000, 22_768)
    if (await isFree(port)) return port
  }
}

async function isFree (port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
