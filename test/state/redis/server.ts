/**
 * A real redis-server of the test's own, on a free port, with its files in a temporary directory. REDIS_SERVER names another one, such as
 * valkey-server.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '../../helpers/free-port.js'

export const program = process.env['REDIS_SERVER'] ?? 'redis-server'

export const hasRedis = spawnSync(program, ['--version']).status === 0
/** For tap's `skip`: the reason, or false. */
export const withoutRedis = hasRedis ? false : `${program} is not installed`

export interface RedisServer {
  readonly url: string
  readonly port: number
  readonly kill: () => Promise<void>
  readonly start: () => Promise<void>
  readonly signal: (signal: NodeJS.Signals) => void
  readonly stop: () => Promise<void>
}

/** `keepsAll`: a kill takes nothing that it had answered, at the price of one wait for the disk each time. */
export async function startRedis ({
  cluster = false, keepsAll = false,
}: { cluster?: boolean, keepsAll?: boolean } = {}): Promise<RedisServer> {
  const port = await freePort()
  const dir = mkdtempSync(join(tmpdir(), 'llm-gateway-redis-'))
  const options = [
    '--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--save', '', '--appendonly', 'yes', '--appendfsync',
    keepsAll ? 'always' : 'everysec',
  ]
  if (cluster) options.push('--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1')
  let child: ChildProcess

  const start = async (): Promise<void> => {
    child = spawn(program, options, { stdio: 'ignore' })
    process.once('exit', () => child.kill('SIGKILL'))
    await answers(port)
  }
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  const stop = async (): Promise<void> => {
    await kill()
    rmSync(dir, { recursive: true, force: true })
  }
  await start()
  if (cluster) await ownEverySlot(port)
  return { url: `redis://127.0.0.1:${port}`, port, kill, start, signal: (signal) => { child.kill(signal) }, stop }
}

async function ownEverySlot (port: number): Promise<void> {
  spawnSync('redis-cli', ['-p', String(port), 'cluster', 'addslotsrange', '0', '16383'])
  while (!spawnSync('redis-cli', ['-p', String(port), 'cluster', 'info']).stdout.toString().includes('cluster_state:ok')) await pause(20)
}

async function answers (port: number): Promise<void> {
  while (!(await ping(port))) await pause(20)
}

async function ping (port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'))
    socket.once('data', (data) => {
      socket.destroy()
      resolve(data.toString().startsWith('+PONG'))
    })
    socket.on('error', () => {})
    socket.once('close', () => resolve(false))
  })
}
