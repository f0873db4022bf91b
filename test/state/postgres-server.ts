/**
 * A real PostgreSQL of the test's own, on a free port, with its files in a temporary directory. Whatever runs on the machine as a
 * service is left alone. It refuses to run as root, and runs as nobody then. POSTGRES_BIN names the folder of another one.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { freePort } from '../helpers/free-port.js'

const versions = '/usr/lib/postgresql'
/** Debian's are not on the path. */
const bin = process.env['POSTGRES_BIN'] ?? (existsSync(versions) ? join(versions, String(readdirSync(versions).sort().at(-1)), 'bin') : '')
const nobody = 65_534
const isRoot = process.getuid?.() === 0
const user = isRoot ? { uid: nobody, gid: nobody } : {}

/** For tap's `skip`: the reason, or false. */
export const withoutPostgres = existsSync(join(bin, 'initdb')) ? false : 'postgresql is not installed'

export interface PostgresServer {
  readonly url: string
  /** A folder that the server may write to. */
  readonly dir: string
  readonly ask: <Row extends object>(text: string, values?: readonly unknown[]) => Promise<Row[]>
  readonly kill: () => Promise<void>
  readonly start: () => Promise<void>
  readonly signal: (signal: NodeJS.Signals) => void
  readonly stop: () => Promise<void>
}

export async function startPostgres (settings: Readonly<Record<string, string | number>> = {}): Promise<PostgresServer> {
  const port = await freePort()
  const dir = mkdtempSync(join(tmpdir(), 'llm-gateway-postgres-'))
  if (isRoot) chownSync(dir, nobody, nobody)
  const data = join(dir, 'data')
  const made = spawnSync(join(bin, 'initdb'), ['-D', data, '-U', 'tester', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'], {
    ...user, cwd: dir, encoding: 'utf8',
  })
  if (made.status !== 0) throw new Error(made.stderr)
  const wanted = { listen_addresses: '127.0.0.1', unix_socket_directories: '', fsync: 'off', shared_buffers: '16MB', ...settings }
  const options = Object.entries(wanted).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const url = `postgres://tester@127.0.0.1:${port}/postgres`
  let child: ChildProcess

  const ask: PostgresServer['ask'] = async <Row extends object>(text: string, values: readonly unknown[] = []) => {
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => {})
    try {
      await client.connect()
      return (await client.query<Row>(text, [...values])).rows
    } finally {
      await client.end()
    }
  }
  const start = async (): Promise<void> => {
    for (;;) {
      child = spawn(join(bin, 'postgres'), ['-D', data, '-p', String(port), ...options], { ...user, cwd: dir, stdio: 'ignore' })
      const ended = once(child, 'exit').then(() => false)
      process.once('exit', () => child.kill('SIGQUIT'))
      if (await Promise.race([answers(ask), ended])) return
      // Children of one that was killed hold on to its files for a moment.
      await pause(50)
    }
  }
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill(signal)
    await once(child, 'exit')
  }
  await start()
  return {
    url,
    dir,
    ask,
    start,
    kill: async () => await end('SIGKILL'),
    signal: (signal) => { child.kill(signal) },
    stop: async () => {
      await end('SIGQUIT')
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

async function answers (ask: PostgresServer['ask']): Promise<boolean> {
  for (;;) {
    if (await ask('SELECT 1').then(() => true, () => false)) return true
    await pause(20)
  }
}
