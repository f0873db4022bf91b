/** What the process is watched by, beside the gateway's own. */
import Fastify from 'fastify'
import { Registry, collectDefaultMetrics, register } from 'prom-client'
import t from 'tap'
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { countTogether, metrics } from '../../plugins/metrics/index.js'
import { LoopDelays, ProcessFamilies } from '../../plugins/metrics/process-families.js'
import { samplesOf } from './meters.js'

function block (ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until);
}

const names = new ProcessFamilies(null).families.map(({ name }) => name)

t.test('they have the names, the types and the units of prom-client', async (t) => {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  t.teardown(() => registry.clear())
  for (const { name, row } of new ProcessFamilies(null).families) {
    const theirs = await registry.getSingleMetric(name)?.get()
    t.equal(theirs?.type.toString(), row.type, name)
  }
})

t.test('an app serves them where it is asked to, and puts nothing into the global registry', async (t) => {
  const app = Fastify()
  t.teardown(async () => await app.close())
  await app.register(metrics, { process: true })
  const scrape = async () => samplesOf((await app.inject({ url: '/metrics' })).body)
  const before = await scrape()
  for (const name of names) t.ok(Number(before.get(name)) >= 0, name)
  t.ok(Number(before.get('process_resident_memory_bytes')) > 10e6)
  t.ok(Math.abs(Number(before.get('process_start_time_seconds')) - (Date.now() / 1e3 - process.uptime())) < 5)
  block(100)
  const after = await scrape()
  t.ok(Number(after.get('process_cpu_seconds_total')) > Number(before.get('process_cpu_seconds_total')))
  t.ok(Number(after.get('process_cpu_seconds_total')) <= process.uptime() * (availableParallelism() + 1))
  t.same(register.getMetricsAsArray(), [])
})

t.test('and not where it is not', async (t) => {
  const app = Fastify()
  t.teardown(async () => await app.close())
  await app.register(metrics, {})
  const { body } = await app.inject({ url: '/metrics' })
  t.notMatch(body, /^(?:process|nodejs)_/m)
})

t.test('a registry that has them already says so', async (t) => {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const app = Fastify()
  t.teardown(async () => await app.close())
  await t.rejects(async () => await app.register(metrics, { registry, process: true }), {
    message: /already holds a metric named process_cpu_seconds_total/,
  })
})

t.test('what peers are told of the processor time is what is served', async (t) => {
  const told: Array<[string, number]> = []
  const { families, ...own } = { ...new ProcessFamilies((name, cell) => told.push([name, 'value' in cell ? cell.value : 0])) }
  t.same(own, {})
  const [cpu] = families
  const [cell] = cpu?.read() ?? []
  t.same(told, [['process_cpu_seconds_total', cell !== undefined && 'value' in cell ? cell.value : -1]])
})

t.test('peers are told without a scrape, until the app is closed', async (t) => {
  const told: string[] = []
  const cells = {}
  countTogether(cells, { counted: (name: string) => told.push(name), join: () => {}, refresh: async () => {}, cells: () => [] })
  const app = Fastify()
  const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length
  const before = timers()
  await app.register(metrics, { process: true, cells })
  t.equal(timers(), before, 'which keeps no process alive')
  await app.ready()
  while (!told.includes('process_cpu_seconds_total')) await sleep(20)
  await app.close()
  const { length } = told
  await sleep(1_200)
  t.equal(told.length, length)
})

t.test('of several processes it is the sum, the first start and the latest turn', async (t) => {
  const value = 1e12
  const cells = {}
  countTogether(cells, {
    counted: () => {},
    join: () => {},
    refresh: async () => {},
    cells: (name: string) => /^(?:process|nodejs)_/.test(name) ? [{ labels: {}, text: '', value }] : [],
  })
  const app = Fastify()
  t.teardown(async () => await app.close())
  await app.register(metrics, { process: true, cells })
  const samples = samplesOf((await app.inject('/metrics')).body)
  for (const name of names) {
    const shown = Number(samples.get(name))
    if (name.includes('start_time')) t.ok(shown < value, name)
    else if (name.includes('lag')) t.equal(shown, value, name)
    else t.ok(shown > value, name)
  }
})

t.test('a late event loop is seen until the window after its own is over', async (t) => {
  const delays = new LoopDelays()
  await sleep(50)
  block(300)
  await sleep(50)
  const start = performance.now()
  t.ok(delays.read(start).max > 0.1)
  t.ok(delays.read(start).p99 > 0.1, 'a second reader sees it, too')
  t.ok(delays.read(start + 20_000).max > 0.1, 'which ends the window')
  for (const later of [20_001, 20_002]) t.ok(delays.read(start + later).max > 0.1, 'the window before')
  // Without a turn of the loop in between, which may itself be late.
  delays.read(start + 40_000)
  t.ok(delays.read(start + 60_000).max < 0.1)
  t.ok(delays.read(start + 60_000).p50 <= delays.read(start + 60_000).max)
})
