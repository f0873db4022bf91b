import { spawnSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import t from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { launch, originOf, program } from '../helpers/launch.js'
import { startUpstream } from '../helpers/upstream.js'
import { needs } from '../metrics/programs.js'
import { startPostgres, withoutPostgres } from '../state/postgres-server.js'
import { startRedis, withoutRedis } from '../state/redis/server.js'
import { chat } from '../standalone/run.js'

const folder = new URL('../../examples/kubernetes/', import.meta.url).pathname
const chart = join(folder, 'chart')

function read (path: string): string {
  return readFileSync(join(folder, path), 'utf8')
}

/** By kind; each stands once. */
const manifests = Object.fromEntries(readdirSync(join(folder, 'manifests')).map((name) => {
  const manifest = parse(read(`manifests/${name}`))
  return [manifest.kind, manifest]
}))
const { Deployment: { spec: { template: { metadata: pod, spec } } } } = manifests
const [container] = spec.containers
const text: string = manifests['ConfigMap'].data['gateway.yaml']
const config = parse(text)

t.test('what stands in one manifest and is named in another agrees', async (t) => {
  for (const kind of ['Deployment', 'PodDisruptionBudget', 'ServiceMonitor']) {
    t.same(manifests[kind].spec.selector.matchLabels, pod.labels, kind)
  }
  t.same(manifests['Service'].spec.selector, pod.labels)
  t.match(manifests['HorizontalPodAutoscaler'].spec.scaleTargetRef, { kind: 'Deployment', name: manifests['Deployment'].metadata.name })
  t.match(manifests['ServiceMonitor'].spec.selector.matchLabels, manifests['Service'].metadata.labels)
  t.equal(manifests['Service'].metadata.labels[manifests['ServiceMonitor'].spec.jobLabel], 'llm-gateway', 'the job that an alert names')
  const [port] = manifests['Service'].spec.ports
  t.equal(port.targetPort, container.ports[0].name)
  t.equal(manifests['ServiceMonitor'].spec.endpoints[0].port, port.name)
  t.same(spec.volumes.map(({ name }: { name: string }) => name), container.volumeMounts.map(({ name }: { name: string }) => name))
  t.equal(spec.volumes[0].configMap.name, manifests['ConfigMap'].metadata.name)
  for (const [, name] of text.matchAll(/\$\{(\w+)\}/g)) t.match(read('README.md'), `--from-literal=${name}=`)
})

t.test('the pod is what the image is made for', async (t) => {
  const image = readFileSync(join(folder, '../docker/Dockerfile'), 'utf8')
  t.match(image, `USER ${spec.securityContext.runAsUser}:${spec.securityContext.runAsGroup}`)
  t.match(image, `EXPOSE ${container.ports[0].containerPort}`)
  const [at, state] = container.volumeMounts
  t.match(image, `LLM_GATEWAY_CONFIG=${at.mountPath}/gateway.yaml`)
  t.match(image, `VOLUME ${state.mountPath}`)
})

t.test('a pod is given time for all that its end consists of', async (t) => {
  const [command, seconds] = container.lifecycle.preStop.exec.command
  t.equal(command, 'sleep')
  t.ok(spec.terminationGracePeriodSeconds >= Number(seconds) + config.listen.shutdownGraceMs / 1_000 + 15)
})

t.test('probes and scrapes ask what a gateway of this configuration answers, also while it drains', {
  skip: withoutRedis || withoutPostgres,
}, async (t) => {
  const [redis, postgres, upstream] = await Promise.all([startRedis(), startPostgres(), startUpstream(t)])
  t.teardown(async () => { await Promise.all([redis.stop(), postgres.stop()]) })
  const home = t.testdir({ 'gateway.yaml': text.replace('https://api.openai.com', upstream.url), state: {} })
  const env = {
    LLM_GATEWAY_CONFIG: join(home, 'gateway.yaml'),
    PORT: '0',
    OPENAI_API_KEY: 'provider-key',
    REDIS_URL: redis.url,
    USAGE_STORE_URL: postgres.url,
  }
  const cwd = join(home, 'state')
  const check = launch(t, program, ['check'], env, cwd)
  t.equal(await check.exited, 0, check.err.join('\n'))
  const secret = await launch(t, program, ['keys', 'create', '--group', 'chat', '--id', 'team-a'], env, cwd).out.next()
  const child = launch(t, program, ['start'], env, cwd)
  const origin = await originOf(child)
  const statusOf = async ({ path }: { path: string }): Promise<number> => (await fetch(`${origin}${path}`)).status
  const { readinessProbe, livenessProbe, startupProbe } = container
  for (const probe of [readinessProbe, livenessProbe, startupProbe]) t.equal(await statusOf(probe.httpGet), 200)
  t.equal(await statusOf(manifests['ServiceMonitor'].spec.endpoints[0]), 200)

  upstream.queue({ stallAt: 0 })
  const running = chat(origin, secret).then(({ status }) => status, () => 'cut')
  await upstream.requests.next()
  child.process.kill('SIGTERM')
  while (await statusOf(readinessProbe.httpGet) !== 503);
  t.equal(await statusOf(livenessProbe.httpGet), 200, 'what drains is not killed for it')
  child.process.kill('SIGTERM')
  await Promise.all([child.exited, running])
})

const schema = JSON.parse(read('chart/values.schema.json'))
const values = parse(read('chart/values.yaml'))

t.test('the values of the chart fit their schema, and mistakes do not', async (t) => {
  const fits = new Ajv({ strictRequired: false }).compile(schema)
  t.ok(fits(values), JSON.stringify(fits.errors))
  for (const wrong of [
    { ...values, replica: 3 },
    { ...values, replicas: { ...values.replicas, min: 0 } },
    { ...values, preStopSeconds: '10' },
    { ...values, config: { ...values.config, state: { engine: 'lmdb' } } },
    { ...values, config: { ...values.config, metrics: {} } },
  ]) t.notOk(fits(wrong))
  t.same(values.config, config, 'its configuration is that of the ConfigMap')
})

/** What the chart makes, by kind, the configuration in it as data. */
function rendered (set: readonly string[] = [], release = 'llm-gateway'): {
  status: number | null
  stderr: string
  made: Record<string, Record<string, unknown>>
} {
  const args = ['template', release, chart, ...set.flatMap((each) => ['--set', each])]
  const { status, stdout, stderr } = spawnSync('helm', args, { encoding: 'utf8' })
  const made = parseAllDocuments(stdout).map((document) => document.toJS()).filter((each) => each !== null)
  return { status, stderr, made: Object.fromEntries(made.map((each) => [each.kind, comparable(each)])) }
}

function comparable (manifest: Record<string, unknown>): Record<string, unknown> {
  return manifest['kind'] === 'ConfigMap' ? { ...manifest, data: parse(Object(manifest['data'])['gateway.yaml']) } : manifest
}

t.test('helm makes the manifests of the chart', needs('helm'), async (t) => {
  const lint = spawnSync('helm', ['lint', '--strict', chart], { encoding: 'utf8' })
  t.equal(lint.status, 0, lint.stdout + lint.stderr)
  t.strictSame(
    rendered().made, Object.fromEntries(Object.entries(manifests).map(([kind, manifest]) => [kind, comparable(Object(manifest))]))
  )
  const { made } = rendered([
    'config.listen.shutdownGraceMs=600500', 'preStopSeconds=20', 'serviceMonitor.enabled=false', 'image.tag=1.2.3',
  ])
  t.match(made['Deployment'], {
    spec: { template: { spec: { terminationGracePeriodSeconds: 636, containers: [{ image: 'llm-gateway:1.2.3' }] } } },
  })
  t.notOk('ServiceMonitor' in made)
  t.match(rendered(['replicas.min=none']), { status: 1, stderr: /replicas.*min/s })
})

t.test('what helm is told stays text, and a monitor has the labels by which it is selected', needs('helm'), async (t) => {
  const { made } = rendered(['serviceMonitor.labels.release=monitoring', 'config.metrics.path=/{metrics}'], 'true')
  for (const [kind, { metadata }] of Object.entries(made)) {
    t.match(metadata, { name: 'true', labels: { 'app.kubernetes.io/instance': 'true' } }, kind)
  }
  t.match(made['ServiceMonitor'], { metadata: { labels: { release: 'monitoring' } }, spec: { endpoints: [{ path: '/{metrics}' }] } })
  t.match(made['HorizontalPodAutoscaler'], { spec: { scaleTargetRef: { name: 'true' } } })
})
