import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync, chownSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { freePort } from '../helpers/free-port.js'
import { cleanly } from '../helpers/launch.js'
import { needs, promtool } from '../metrics/programs.js'
import { startPostgres, withoutPostgres } from '../state/postgres-server.js'
import { startRedis, withoutRedis } from '../state/redis/server.js'
import { run } from '../../bin/cli.js'

const root = new URL('../../', import.meta.url).pathname
const folder = join(root, 'examples/docker')
const dockerfile = readFileSync(join(folder, 'Dockerfile'), 'utf8').replaceAll(/ *\\\n */g, ' ')
const compose = parse(readFileSync(join(folder, 'compose.yaml'), 'utf8'))
const config = readFileSync(join(folder, 'config/gateway.yaml'), 'utf8')

interface Mount {
  readonly service: string
  readonly source: string
  readonly target: string
}

const mounts: Mount[] = Object.keys(compose.services).flatMap((service) => {
  return compose.services[service].volumes.map((text: string) => {
    const [source = '', target = ''] = text.split(':')
    return { service, source, target }
  })
})

/** Instructions of the Dockerfile, in order. */
function instructions (name: string): string[] {
  return [...dockerfile.matchAll(new RegExp(`^ *${name} (.*)$`, 'gm'))].map(([, text = '']) => text)
}

/** ENV of the image. */
const imageEnv = Object.fromEntries(instructions('ENV').flatMap((line) => line.split(' ')).map((pair) => pair.split('=')))

t.test('every file that is mounted is there, every volume is declared', async (t) => {
  for (const { source, target } of mounts) {
    t.match(target, /^\//, source)
    if (source.startsWith('.')) t.ok(existsSync(join(folder, source)), source)
    else t.ok(source in compose.volumes, source)
  }
})

t.test('the rules that the scrape names are mounted beside it, and promtool accepts them', needs('promtool'), async (t) => {
  const of = (name: string): Mount | undefined => mounts.find(({ service, target }) => service === 'prometheus' && target.endsWith(name))
  const scrape = String(of('prometheus.yml')?.source)
  const home = t.testdir({})
  for (const name of ['prometheus.yml', ...parse(readFileSync(join(folder, scrape), 'utf8')).rule_files]) {
    const mount = of(name)
    t.equal(mount?.target, `/etc/prometheus/${name}`)
    cpSync(join(folder, String(mount?.source)), join(home, name))
  }
  const { code, output } = promtool(['check', 'config', join(home, 'prometheus.yml')])
  t.equal(code, 0, output)
})

t.test('what the image copies is all that its build needs', async (t) => {
  const home = t.testdir({})
  const [stage = ''] = dockerfile.split('RUN npm run build')
  const sources = [...stage.matchAll(/^COPY (.*) \S+$/gm)].flatMap(([, names = '']) => names.split(' '))
  const passed = readFileSync(join(folder, 'Dockerfile.dockerignore'), 'utf8').split('\n')
  for (const source of sources) {
    t.ok(passed.includes(`!${source}`), `${source} is not left out`)
    cpSync(join(root, source), join(home, source), { recursive: true })
  }
  symlinkSync(join(root, 'node_modules'), join(home, 'node_modules'))
  const { status, stderr } = spawnSync(...cleanly('npm', ['run', '--silent', 'build']), { cwd: home, encoding: 'utf8', timeout: 120_000 })
  t.equal(status, 0, stderr)
  t.ok(existsSync(join(home, 'dist/bin/llm-gateway.js')))
})

t.test('services find each other by the ports that they have', async (t) => {
  const { scrape_configs: [scrape] } = parse(readFileSync(join(folder, 'prometheus.yml'), 'utf8'))
  t.same(scrape.static_configs[0].targets, [`gateway:${imageEnv['PORT']}`])
  t.equal(scrape.metrics_path, parse(config).metrics.path)
  t.equal(compose.services.gateway.ports[0].split(':').at(-1), imageEnv['PORT'])
  t.same(instructions('EXPOSE'), [imageEnv['PORT']])
})

t.test('Grafana finds every dashboard, and the data source that it is made for', async (t) => {
  const { datasources }: { datasources: Array<{ type: string, url: string }> } = parse(readFileSync(
    join(folder, 'grafana/datasources/sources.yml'), 'utf8'
  ))
  const { providers: [provider] } = parse(readFileSync(join(folder, 'grafana/dashboards/llm-gateway.yml'), 'utf8'))
  t.same(datasources.map(({ url }) => url.replace('http://', '')), ['prometheus:9090', 'postgres:5432'])
  const dashboards = mounts.filter(({ target }) => target.endsWith('.json'))
  t.equal(dashboards.length, readdirSync(join(root, 'examples/observability')).filter((name) => name.endsWith('dashboard.json')).length)
  for (const { source, target } of dashboards) {
    t.equal(dirname(target), provider.options.path)
    const variables: Array<{ type: string, query: string }> = JSON.parse(readFileSync(join(folder, source), 'utf8')).templating.list
    for (const { query } of variables.filter(({ type }) => type === 'datasource')) {
      t.ok(datasources.some(({ type }) => type === query), query)
    }
  }
})

t.test('the configuration stands where the image looks, and has every variable that it names', async (t) => {
  const [mount] = mounts.filter(({ source }) => source === './config')
  t.equal(`${mount?.target}/gateway.yaml`, imageEnv['LLM_GATEWAY_CONFIG'])
  const given = compose.services.gateway.environment
  const env = Object.fromEntries(Object.entries<string>(given).map(([name, value]) => [name, value.replaceAll(/\$\{[^}]*\}/g, 'x')]))
  const err: string[] = []
  const code = await run(['check', '--config', join(folder, 'config/gateway.yaml')], {
    env, out: () => {}, err: (line) => err.push(line), progress: null, onSignal: () => {}, exit: () => {},
  })
  t.same({ code, err }, { code: 0, err: [] })
  const readme = readFileSync(join(folder, 'README.md'), 'utf8')
  for (const [, name] of JSON.stringify(compose).matchAll(/\$\{(\w+)/g)) t.match(readme, `${name}=`)
})

t.test('the state is in a volume, and its end waits for the requests that run', async (t) => {
  const { gateway } = compose.services
  t.ok(instructions('VOLUME').every((path) => mounts.some(({ service, target }) => service === 'gateway' && target === path)))
  t.same(instructions('WORKDIR').at(-1), instructions('VOLUME')[0])
  t.ok(Number.parseInt(gateway.stop_grace_period) * 1_000 >= parse(config).listen.shutdownGraceMs + 10_000)
  t.equal(gateway.read_only, true)
})

t.test('what is copied is there, and seen through the list of what is left out', async (t) => {
  const seen = readFileSync(join(folder, 'Dockerfile.dockerignore'), 'utf8').split('\n')
  t.ok(seen.includes('*'))
  const copied = instructions('COPY').filter((line) => !line.startsWith('--from')).flatMap((line) => line.split(' ').slice(0, -1))
  for (const path of copied) {
    t.ok(existsSync(join(root, path)), path)
    t.ok(seen.includes(`!${path.split('/')[0]}`), path)
  }
})

/** The folder /app of the image, made by its own commands: of root, and not to be written by anybody. */
function makeApp (t: Test): string {
  const app = mkdtempSync(join(tmpdir(), 'llm-gateway-image-'))
  t.teardown(() => {
    spawnSync('chmod', ['-R', 'u+w', app])
    rmSync(app, { recursive: true, force: true })
  })
  for (const name of ['package.json', 'package-lock.json', '.npmrc']) cpSync(join(root, name), join(app, name))
  const [command = ''] = instructions('RUN').filter((text) => text.includes('--omit=dev'))
  const env = [`PATH=${String(process.env['PATH'])}`, `HOME=${String(process.env['HOME'])}`, 'npm_config_prefer_offline=true']
  const made = spawnSync('/usr/bin/env', ['-i', ...env, 'sh', '-c', command], { cwd: app, encoding: 'utf8' })
  t.equal(made.status, 0, made.stderr)
  for (const path of ['schemas', 'dist']) cpSync(join(root, path), join(app, path), { recursive: true })
  chmodSync(app, 0o755)
  spawnSync('chmod', ['-R', 'a-w,a+rX', app])
  return app
}

const isRoot = process.getuid?.() === 0 && spawnSync('setpriv', ['--version']).status === 0

/** As the user of the image where this process may become another. */
function asUser (command: readonly string[]): string[] {
  const [user = ''] = instructions('USER')
  const [uid, gid] = user.split(':')
  return isRoot ? ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', '--no-new-privs', ...command] : [...command]
}

t.test('what the image runs serves from files that it cannot write, tells its health and ends', {
  skip: withoutRedis || withoutPostgres,
}, async (t) => {
  const [redis, postgres, port] = await Promise.all([startRedis(), startPostgres(), freePort()])
  t.teardown(async () => { await Promise.all([redis.stop(), postgres.stop()]) })
  const app = makeApp(t)
  const packages = readdirSync(join(app, 'node_modules'))
  for (const name of ['fastify', 'lmdb', 'ioredis', 'pg']) t.ok(packages.includes(name), name)
  t.same(packages.filter((name) => ['tap', 'typescript', 'eslint', 'openai'].includes(name)), [])

  const home = mkdtempSync(join(tmpdir(), 'llm-gateway-state-'))
  t.teardown(() => rmSync(home, { recursive: true, force: true }))
  if (isRoot) chownSync(home, 1000, 1000)
  mkdirSync(join(app, 'etc'))
  writeFileSync(join(app, 'etc/gateway.yaml'), config)
  const env = Object.entries({
    PATH: process.env['PATH'],
    ...imageEnv,
    HOST: '127.0.0.1',
    PORT: port,
    LLM_GATEWAY_CONFIG: join(app, 'etc/gateway.yaml'),
    OPENAI_API_KEY: 'x',
    REDIS_URL: redis.url,
    USAGE_STORE_URL: postgres.url,
  }).map(([name, value]) => `${name}=${value}`)
  const inImage = (words: readonly string[]): string[] => [
    '-i', ...env, ...asUser([process.execPath, ...words.slice(1).map((word) => word.replace(/^\/app/, app))]),
  ]
  const list = (name: string): string[] => JSON.parse(String(instructions(name).at(-1)))
  const health: string[] = JSON.parse(String(instructions('HEALTHCHECK')[0]?.replace(/^.*? CMD /, '')))
  const isHealthy = (): boolean => spawnSync('/usr/bin/env', inImage(health), { cwd: home }).status === 0

  t.equal(isHealthy(), false)
  const child = spawn('/usr/bin/env', inImage([...list('ENTRYPOINT'), ...list('CMD')]), { cwd: home, stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const lines = createInterface(child.stdout)
  await new Promise<void>((resolve) => lines.on('line', (line) => line.includes('listens on') && resolve()))
  const ended = new Promise((resolve) => child.once('close', (...how) => resolve(how)))
  if (isRoot) t.match(readFileSync(`/proc/${child.pid}/status`, 'utf8'), /^Uid:\t1000\t1000\t1000\t1000$/m)
  while (!isHealthy()) await pause(50)
  const keys = spawnSync('/usr/bin/env', inImage([...list('ENTRYPOINT'), 'keys', 'create', '--group', 'chat', '--id', 'team-a']), {
    cwd: home, encoding: 'utf8',
  })
  t.match(keys.stdout, /^sk-lgw-team-a-/, keys.stderr)
  child.kill('SIGTERM')
  t.same(await ended, [0, null])
  t.ok(existsSync(join(home, 'data')), 'its state is where it was started')
})
