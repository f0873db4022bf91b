/** A Redis Cluster that wants a password: at each of its nodes, the one that is named and those that are found through it. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { linkRedis, type RedisLink } from '../../../plugins/state/redis/link.js'
import { freePort } from '../../helpers/free-port.js'
import { launch, program as gateway } from '../../helpers/launch.js'
import { yaml } from '../../standalone/run.js'
import { startHalves } from './cluster.js'
import { program, withoutRedis } from './server.js'

/** Of a busy machine. */
const patient = { commandTimeoutMs: 5_000 }

interface Cluster {
  readonly address: string
  /** On each node. */
  readonly acl: (...rules: string[]) => Promise<void>
  /** Ends the connections of `gateway`; how many there were at each node. */
  readonly cut: () => Promise<number[]>
}

/** Two nodes with half of the slots each; who gives no password may do nothing. */
async function startCluster (t: Test): Promise<Cluster> {
  const { servers, operators } = await startHalves(t)
  const acl: Cluster['acl'] = async (...rules) => {
    for (const operator of operators) await operator.call('ACL', 'SETUSER', 'gateway', ...rules)
  }
  for (const operator of operators) await operator.call('ACL', 'SETUSER', 'default', '>of the operator', 'resetpass', '>operator')
  const cut = async (): Promise<number[]> => await Promise.all(operators.map(async (operator) => Number(
    await operator.call('CLIENT', 'KILL', 'USER', 'gateway')
  )))
  return { address: `127.0.0.1:${servers[0]?.port}`, acl, cut }
}

/** A cluster of one node behind TLS that is known by its name alone, as its certificate has it. */
async function startEncrypted (t: Test, folder: string): Promise<string> {
  const port = await freePort()
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const request = 'req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost'
  spawnSync('openssl', [...request.split(' '), '-keyout', key, '-out', cert])
  const name = '--cluster-enabled yes --cluster-announce-hostname localhost --cluster-preferred-endpoint-type hostname'
  const child = spawn(program, [
    '--port', '0', '--tls-port', `${port}`, '--cluster-port', `${port + 10_000}`, '--tls-cluster', 'yes',
    '--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', cert,
    '--tls-auth-clients', 'no', ...name.split(' '), '--dir', folder, '--save', '', '--requirepass', 'one',
  ], { stdio: 'ignore' })
  const exited = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exited
  })
  const ask = (...args: string[]): string => spawnSync(
    'redis-cli', ['-p', `${port}`, '-h', 'localhost', '--tls', '--cacert', cert, '-a', 'one', ...args]
  ).stdout.toString()
  for (let tries = 0; !ask('ping').includes('PONG'); tries += 1) {
    if (tries > 200) throw new Error('redis-server does not answer behind TLS')
    await pause(50)
  }
  ask('cluster', 'addslotsrange', '0', '16383')
  while (!ask('cluster', 'info').includes('cluster_state:ok')) await pause(50)
  return `localhost:${port}`
}

/** A key of each of so many slots, which are at one node or the other. */
async function useAll ({ ask }: RedisLink): Promise<void> {
  for (let i = 0; i < 20; i += 1) await ask(async (client) => await client.set(`{${i}}`, i))
}

t.test('the name and the password of the address hold for every node', { skip: withoutRedis }, async (t) => {
  const { address, acl, cut } = await startCluster(t)
  await acl('on', '>one:/@', '~*', '&*', '+@all')
  const link = await linkRedis({ ...patient, engine: 'redis', cluster: true, url: `redis://gateway:one%3A%2F%40@${address}` })
  t.teardown(link.close)
  await useAll(link)
  t.ok((await cut()).every((connections) => connections > 0), 'it is at both')
})

t.test('a password in a file is read for each new connection to any node', { skip: withoutRedis }, async (t) => {
  const { address, acl, cut } = await startCluster(t)
  await acl('on', '>one', '~*', '&*', '+@all')
  const file = join(t.testdir({ password: 'one\n' }), 'password')
  const link = await linkRedis({ ...patient, engine: 'redis', cluster: true, url: `redis://gateway@${address}`, password: { file } })
  t.teardown(link.close)
  await useAll(link)
  let heard = ''
  await link.subscribe('all', (text) => { heard = text }, () => {})

  await acl('>two')
  writeFileSync(file, 'two')
  await acl('<one')
  await useAll(link)
  for (let round = 0; round < 2; round += 1) {
    t.ok((await cut()).every((connections) => connections > 0), 'both are cut off')
    for (let end = Date.now() + 10_000; Date.now() < end;) {
      if (await useAll(link).then(() => true, () => false)) break
      await pause(50)
    }
    await useAll(link)
    t.pass('and both are asked again')
    heard = ''
    for (let end = Date.now() + 10_000; Date.now() < end;) {
      if (heard !== '') break
      await link.ask(async (client) => await client.publish('all', 'word')).catch(() => {})
      await pause(50)
    }
    t.equal(heard, 'word', 'what is pushed comes again')
  }
})

const withoutTls = spawnSync('openssl', ['version']).status === 0 ? withoutRedis : 'openssl is not installed'

t.test('behind TLS a node is asked by its name, which its certificate has', { skip: withoutTls }, async (t) => {
  const folder = t.testdir({})
  const url = `rediss://default:one@${await startEncrypted(t, folder)}`
  await t.rejects(linkRedis({ ...patient, engine: 'redis', cluster: true, url }, 500), /was not ready/, 'not to one whose certificate nobody vouches for')
  const file = join(folder, 'gateway.yaml')
  const state = `engine: redis, cluster: true, url: "${url}", commandTimeoutMs: 5000, path: ${folder}/data`
  writeFileSync(file, yaml('http://127.0.0.1:9', []).replace('engine: memory', state))
  const env = { NODE_EXTRA_CA_CERTS: join(folder, 'cert.pem') }
  const create = launch(t, gateway, ['keys', 'create', '--group', 'chat', '--config', file], env)
  t.equal(await create.exited, 0, create.err.join())
})
