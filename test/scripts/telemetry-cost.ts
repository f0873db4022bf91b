/**
 * What telemetry costs a request, in nanoseconds of processor time:
 *
 *     node --import=tsx test/scripts/telemetry-cost.ts
 *
 * The cost of tracing without an SDK is the difference of two apps that answer in turn, one with the plugin and one
 * without; a second app without it tells the noise.
 */
import { Writable } from 'node:stream'
import { stdout } from 'node:process'
import Fastify, { type FastifyInstance } from 'fastify'
import { pino } from 'pino'
import { joinGateway } from '../../plugins/core/gateway.js'
import { identify } from '../../plugins/core/call/identify.js'
import { requestLine } from '../../plugins/log/line.js'
import { tracing } from '../../plugins/tracing/index.js'
import { nanoseconds } from '../bench/micro/timing.js'
import { newMeters } from '../metrics/meters.js'
import { groupOf, noTokens, settledRequest } from '../metrics/requests.js'

const usage = { ...noTokens, input: 10, cache_read: 5, output: 20, reasoning: 7 }
const whole = settledRequest({ usage: { tokens: usage }, auth: { group: groupOf('a') } })
const streamed = settledRequest({ usage: { tokens: usage }, stream: true, auth: { group: groupOf('b') }, model: 'gpt-5-mini' })

function report (what: string, ns: number): void {
  stdout.write(`${what.padEnd(60)} ${ns.toFixed(0).padStart(6)} ns\n`)
}

/** The first measurement is of code that the compiler has not seen enough of. */
function warm (call: () => unknown): number {
  for (let run = 0; run < 3; run += 1) nanoseconds(call)
  return nanoseconds(call)
}

const { recorder } = newMeters()
report('metrics of a whole reply', warm(() => {
  recorder.started(whole)
  recorder.settled(whole)
}))
report('metrics of a stream', warm(() => {
  recorder.started(streamed)
  recorder.settled(streamed)
}))
const projected = newMeters({ otel: { meterProvider: null, semconv: 'both' } }).recorder
report('metrics of a whole reply, OpenTelemetry without an SDK', warm(() => {
  projected.started(whole)
  projected.settled(whole)
}))
report('metrics of a key lookup', warm(() => recorder.keyLookedUp('hit')))

const log = pino({ level: 'info' }, new Writable({ write: (_chunk, _encoding, done) => done() }))
report('log line, its object', warm(() => requestLine(whole)))
report('log line, written to nowhere', warm(() => log.info({ llm: requestLine(whole) }, 'model request')))
report('a level that is off', warm(() => log.debug({ llm: requestLine(whole) }, 'model request')))

async function answering (plugin: typeof tracing | null): Promise<FastifyInstance> {
  const app = Fastify()
  const gateway = joinGateway(app)
  app.addHook('onRequest', (request, reply, done) => {
    identify(gateway, request, reply)
    done()
  })
  if (plugin !== null) await app.register(plugin)
  app.post('/v1/chat/completions', (_request, reply) => reply.send('{}'))
  await app.ready()
  return app
}

async function roundNs (app: FastifyInstance, requests: number): Promise<number> {
  const before = process.cpuUsage()
  for (let done = 0; done < requests; done += 1) await app.inject({ method: 'POST', url: '/v1/chat/completions' })
  const { user, system } = process.cpuUsage(before)
  return (user + system) / requests * 1_000
}

function median (values: number[]): number {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN
}

const apps = [await answering(null), await answering(tracing), await answering(null)]
const rounds = 40
const differences: Array<[number, number]> = []
for (let round = 0; round < rounds; round += 1) {
  const [without = 0, traced = 0, again = 0] = await roundsOf(round)
  if (round > 4) differences.push([traced - without, again - without])
}

/** Whoever comes first in a round has an advantage or none: the order turns. */
async function roundsOf (round: number): Promise<number[]> {
  const found: number[] = []
  for (let turn = 0; turn < apps.length; turn += 1) {
    const at = (turn + round) % apps.length
    const app = apps[at]
    if (app !== undefined) found[at] = await roundNs(app, 500)
  }
  return found
}

report('tracing without an SDK, of a whole request', median(differences.map(([traced]) => traced)))
report('noise of that', median(differences.map(([, again]) => again)))
