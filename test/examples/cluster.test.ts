import { spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { FileLedger } from '../../plugins/state/ledger/file-ledger.js'
import { openState, type LedgerRecord } from '../../plugins/state/index.js'
import { createCaller, floorTokens, inParallel, type Answer } from '../endurance/caller.js'
import { startProvider } from '../endurance/provider.js'
import { freePort } from '../helpers/free-port.js'
import { launch, program } from '../helpers/launch.js'
import { startPostgres, withoutPostgres } from '../state/postgres-server.js'

const example = new URL('../../examples/cluster/', import.meta.url).pathname
const missing = ['redis-server', 'nginx'].find((name) => spawnSync('sh', ['-c', `command -v ${name}`]).status !== 0)
const skip = missing === undefined ? withoutPostgres : `${missing} is not installed`

const holdTtlMs = 3_000

interface Cluster {
  readonly folder: string
  /** Of nginx, the three gateways and Redis. */
  readonly ports: readonly number[]
  readonly env: Readonly<Record<string, string>>
  /** Ends the script; resolves with the names of what it left running. */
  readonly end: () => Promise<string[]>
}

/** The example as it stands, on free ports; only times are others, for a busy machine that has no minute to wait. */
async function startExample (t: Test, upstreamUrl: string, usageStoreUrl: string): Promise<Cluster> {
  const folder = mkdtempSync(join(tmpdir(), 'llm-gateway-cluster-'))
  cpSync(example, folder, { recursive: true })
  const ports = await Promise.all(Array.from({ length: 5 }, freePort))
  for (const file of ['gateway.yaml', 'nginx.conf', 'redis.conf', 'start.sh']) {
    const at = join(folder, file)
    const moved = readFileSync(at, 'utf8').replaceAll(
      /\b808[0-3]\b|\b6379\b/g, (port) => String(ports[port === '6379' ? 4 : Number(port) - 8_080])
    )
    // A busy machine delays the event loops of all: nothing is to be refused for that here.
    const patient = moved.replace('commandTimeoutMs: 50', 'commandTimeoutMs: 2000').replace(
      /^metrics:/m, 'overload: { maxLoopDelayMs: 0 }\nmetrics:'
    )
    writeFileSync(at, patient.replace('holdTtlMs: 60000', `holdTtlMs: ${holdTtlMs}`))
  }
  const env = {
    PATH: String(process.env['PATH']),
    UPSTREAM_URL: upstreamUrl,
    UPSTREAM_KEY: 'provider-key',
    USAGE_STORE_URL: usageStoreUrl,
    LLM_GATEWAY: `${process.execPath} ${program}`,
  }
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  // Through `env -i`: the test runner would put its own loader into every process.
  const child = spawn('/usr/bin/env', ['-i', ...variables, './start.sh'], { cwd: folder, stdio: ['ignore', 'inherit', 'ignore'] })
  const exited = new Promise((resolve) => child.once('close', resolve))
  const end = async (): Promise<string[]> => {
    child.kill('SIGTERM')
    await exited
    return ['redis', 'nginx', ...ports.slice(1, 4).map((port) => `gateway-${port}`)].filter(
      (name) => existsSync(`/proc/${pidOf(folder, name)}`)
    )
  }
  t.teardown(async () => {
    await end()
    rmSync(folder, { recursive: true, force: true })
  })
  for (const port of ports.slice(0, 4)) await healthy(port)
  return { folder, ports, env, end }
}

function pidOf (folder: string, name: string): number {
  return Number(readFileSync(join(folder, 'data', `${name}.pid`), 'utf8'))
}

async function healthy (port: number | undefined): Promise<void> {
  while (await fetch(`http://127.0.0.1:${port}/health`).then(({ status }) => status, () => 0) !== 200) await pause(20)
}

/** Kills it hard, and resolves when the script has started another. */
async function kill (folder: string, name: string): Promise<void> {
  const pid = pidOf(folder, name)
  process.kill(pid, 'SIGKILL')
  while (pidOf(folder, name) === pid || pidOf(folder, name) === 0) await pause(10)
}

async function issueKey (t: Test, { folder, env }: Cluster, id: string): Promise<string> {
  const child = launch(t, program, ['keys', 'create', '--config', 'gateway.yaml', '--group', 'chat', '--id', id], env, folder)
  return await child.out.next()
}

/** Sends a made-up key from another address than all others. Resolves with the status. */
async function guess (port: number | undefined, n: number): Promise<number | undefined> {
  const headers = { authorization: `Bearer guess-${n}` }
  return await new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, localAddress: '127.0.0.2', path: '/v1/models', headers }, (reply) => {
      reply.resume()
      resolve(reply.statusCode)
    }).on('error', reject).end()
  })
}

async function recordsIn (folder: string): Promise<LedgerRecord[]> {
  const records: LedgerRecord[] = []
  for await (const record of new FileLedger(join(folder, 'data', 'ledger')).read()) records.push(record)
  return records
}

t.test('gateways and Redis die under traffic: balances, ledger and the provider agree', { skip }, async (t) => {
  const provider = await startProvider({ delayMs: (tag) => tag === 'long' ? 3_000 : Math.random() * 20 })
  t.teardown(provider.close)
  const postgres = await startPostgres()
  t.teardown(postgres.stop)
  const cluster = await startExample(t, provider.url, postgres.url)
  const { folder, ports } = cluster
  const origin = `http://127.0.0.1:${ports[0]}`
  const caller = createCaller(64)
  t.teardown(caller.close)
  const keys = ['a', 'b', 'c']
  const secrets = await Promise.all(keys.map(async (id) => await issueKey(t, cluster, id)))
  // Until each of the three has had enough of it.
  for (let n = 0, refused = 0; refused < 9; n += 1) refused = await guess(ports[0], n) === 429 ? refused + 1 : 0
  const first = await caller.call(origin, { secret: String(secrets[0]), tag: 'first' })
  t.equal(first.status, 200, 'who guesses keys keeps no other caller out')
  const answers: Answer[] = [first]
  let sent = 0
  const asked = new Map<string, string>()
  const chat = async (at: string, i: number): Promise<void> => {
    const tag = `t${sent += 1}`
    asked.set(tag, at)
    answers.push(await caller.call(at, { secret: String(secrets[i % 3]), tag, stream: i % 2 === 0 }))
  }
  const warm = async (): Promise<void> => {
    for (const port of ports.slice(1, 4)) await inParallel(3, 3, async (i) => await chat(`http://127.0.0.1:${port}`, i))
  }
  const over = new AbortController()
  const traffic = Promise.all(Array.from({ length: 24 }, async (_, worker) => {
    for (let i = worker; !over.signal.aborted; i += 1) await chat(origin, i)
  }))
  const some = async (): Promise<void> => {
    const until = answers.length + 200
    while (answers.length < until) await pause(5)
  }

  await warm()
  await some()
  const killed = `127.0.0.1:${ports[2]}`
  const long = caller.call(`http://${killed}`, { secret: String(secrets[0]), tag: 'long', stream: true })
  while (!provider.seen.has('long')) await pause(5)
  await kill(folder, `gateway-${ports[2]}`)
  await some()
  await healthy(ports[2])
  await warm()
  const beforeRedis = answers.length
  await kill(folder, 'redis')
  await some()
  await postgres.kill()
  await some()
  await postgres.start()
  over.abort()
  await traffic
  t.match(await long, { whole: false }, 'what the killed gateway had is cut')

  const failed = answers.filter(({ status, whole }) => status !== 200 || !whole)
  t.comment(`${answers.length} requests, ${failed.length} failed`)
  const wasKilled = ({ tag, headers }: Answer): boolean => String(headers['x-gateway'] ?? asked.get(tag)).includes(killed)
  const cut = failed.filter(wasKilled)
  t.same(failed.filter((each) => !cut.includes(each)), [], 'only requests that the killed gateway had have failed')
  t.ok(failed.length <= 24, 'and each caller lost one at most')
  t.same(failed.filter((each) => answers.indexOf(each) >= beforeRedis), [], 'none while Redis was away')
  t.same([...provider.seen].filter(([, times]) => times !== 1), [], 'nothing reached the provider twice')

  const state = await openState({
    engine: 'redis', url: `redis://127.0.0.1:${ports[4]}`, path: join(folder, 'elsewhere'), commandTimeoutMs: 2_000,
  })
  t.teardown(state.close)
  const records = new Map((await recordsIn(folder)).map((record) => [record.id, record]))
  const whole = answers.filter((each) => each.whole && each.status === 200)
  while (whole.some((each) => !records.has(each.id) && !wasKilled(each))) {
    for (const record of await recordsIn(folder)) records.set(record.id, record)
    await pause(20)
  }
  t.equal((await recordsIn(folder)).length, records.size, 'no record twice')
  // What the killed gateway answered within the last moments before its death may have no record: nobody was told that it had.
  const unrecorded = whole.filter(({ id }) => !records.has(id))
  t.comment(`${unrecorded.length} replies of the killed gateway have no record`)
  for (const { id, tag } of whole.filter((each) => records.has(each.id))) {
    if (records.get(id)?.charged !== provider.reported.get(tag)) {
      t.fail(`${tag} is charged ${records.get(id)?.charged}, reported ${provider.reported.get(tag)}`)
    }
  }

  const recorded = [...records.values()].reduce((sum, { charged }) => sum + charged, 0)
  let group = await state.balances.read('chat')
  const floors = (): number => (group.spent - recorded) / floorTokens
  // On a slow disk a hold may expire before its record is kept, and is charged its floor until then.
  const agrees = (): boolean => Number.isInteger(floors()) && floors() > unrecorded.length && floors() <= 1 + cut.length + unrecorded.length
  for (let tries = 0; (group.held > 0 || !agrees()) && tries < 600; tries += 1) {
    await pause(50)
    group = await state.balances.read('chat')
  }
  t.comment(`spent ${group.spent}, recorded ${recorded}, ${floors()} expired holds`)
  t.match(group, { held: 0, active: 0 })
  t.ok(agrees(), 'what is not in the ledger are the floors of requests that were cut or have no record')
  const shipped = async (): Promise<unknown> =>
    (await postgres.ask('SELECT count(*)::int AS requests, sum(charged)::int AS charged FROM llm_gateway.usage'))[0]
  const all = { requests: records.size, charged: recorded }
  for (let tries = 0; JSON.stringify(await shipped()) !== JSON.stringify(all) && tries < 1_200; tries += 1) await pause(50)
  t.strictSame(await shipped(), all, 'the usage store has every record once')
  t.same(await cluster.end(), [], 'the script leaves nothing running')
})
