/** A redis-server of the benchmark's own, where one is installed, on the core of the driver. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { freePort } from '../helpers/free-port.js'
import { placement } from './machine.js'

export const hasRedis = spawnSync('redis-server', ['--version']).status === 0

export interface RedisServer {
  readonly url: string
  readonly stop: () => Promise<void>
}

export async function startRedis (): Promise<RedisServer> {
  const port = await freePort()
  const command = ['redis-server', '--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
  const [program = 'redis-server', ...rest] = placement.driver === null ? command : ['taskset', '-c', String(placement.driver), ...command]
  const child = spawn(program, rest, { stdio: ['ignore', 'pipe', 'inherit'] })
  for await (const text of child.stdout) if (String(text).includes('Ready to accept connections')) break
  return {
    url: `redis://127.0.0.1:${port}`,
    stop: async () => {
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}
