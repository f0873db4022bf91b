/** Plays one schedule against a gateway with a pool, and tells each promise that was broken. */
import { setTimeout as wait } from 'node:timers/promises'
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import { gatewayOf } from '../../../plugins/core/gateway.js'
import type { ModelCall } from '../../../plugins/core/model-call.js'
import { leafTokens } from '../../../plugins/core/measures.js'
import llmGateway, { proxyOptions } from '../../../plugins/index.js'
import { memoryBalances, memoryLedger, type Balances, type Ledger } from '../../../plugins/state/index.js'
import type { MemberOptions, RetryCause } from '../../../plugins/upstreams/options.js'
import { freePort } from '../../helpers/free-port.js'
import { everyProtocol, gatewayOptions, listen } from '../../helpers/gateway.js'
import { bodyOf, hear, parseReply, type Ask, type Heard, type Leaving, type Reply } from './caller.js'
import { FarSide, type Arrival, type Step } from './far-side.js'

export interface MemberPlan extends Omit<MemberOptions, 'upstream'> {
  /** Nobody listens there. */
  readonly dead: boolean
  /** Its secret is asked for again when it was refused. */
  readonly renews: boolean
  readonly account: string
}

export interface CallerPlan {
  readonly protocol: Ask['protocol']
  readonly stream: boolean
  readonly model: string
  readonly startMs: number
  readonly leaves: Leaving
  /** What becomes of its attempts, in their order; later ones are answered. */
  readonly steps: readonly Step[]
}

export interface Schedule {
  /** In a mount of the host's, and not on own routes. */
  readonly mounted: boolean
  readonly drainMs: number
  readonly attempts: number
  readonly retryOn: readonly RetryCause[]
  readonly affinity: 'conversation' | 'key' | 'none'
  readonly members: readonly MemberPlan[]
  readonly callers: readonly CallerPlan[]
}

const attemptTimeoutMs = 150
const idleTimeoutMs = 200
const balance = 1_000_000_000

interface World {
  readonly app: FastifyInstance
  readonly origin: string
  readonly far: FarSide
  readonly balances: Balances
  readonly ledger: Ledger
  readonly settled: ModelCall[]
  /** How often each request's hold was settled. */
  readonly settlements: Map<string, number>
  readonly secrets: ReadonlyMap<string, ReadonlySet<string>>
}

async function startWorld ({ mounted, drainMs, attempts, retryOn, affinity, members }: Schedule): Promise<World> {
  const far = new FarSide()
  const memory = memoryBalances()
  const settlements = new Map<string, number>()
  const balances: Balances = {
    ...memory,
    settle: (settlement) => {
      settlements.set(settlement.id, (settlements.get(settlement.id) ?? 0) + 1)
      return memory.settle(settlement)
    },
  }
  const ledger = memoryLedger()
  const urls = await Promise.all(members.map(async ({ dead }, i) => dead ? `http://127.0.0.1:${await freePort()}` : await far.add(`m${i}`)))
  const secrets = new Map(members.map((_, i) => [`m${i}`, new Set<string>()]))
  const credential = (i: number) => (): string => {
    const given = secrets.get(`m${i}`) ?? new Set()
    given.add(`secret-${i}-${given.size}`)
    return `secret-${i}-${given.size - 1}`
  }
  const transport = { idleTimeoutMs, drain: { maxMs: drainMs } }
  const app = Fastify()
  await app.register(llmGateway, gatewayOptions('', {
    routes: !mounted,
    upstreams: Object.fromEntries(members.map(({ renews, account }, i) => [`m${i}`, { url: String(urls[i]), account, credential: renews ? credential(i) : credential(i)() }])),
    pools: { pool: { members: members.map(({ dead, renews, account, ...rules }, i) => ({ upstream: `m${i}`, ...rules })), attempts, retryOn, affinity, attemptTimeoutMs } },
    groups: { all: { protocols: everyProtocol, upstream: 'pool', limits: { balance, concurrency: 1_000 } } },
    limits: { balances, ledger },
    forward: transport,
    log: false,
  }))
  if (mounted) await app.register(httpProxy, { ...proxyOptions(transport), upstream: 'http://127.0.0.1:9', prefix: '/v1', rewritePrefix: '/v1' })
  const settled: ModelCall[] = []
  gatewayOf(app).onSettled((llm) => settled.push(llm))
  return { app, origin: await listen(app), far, balances, ledger, settled, settlements, secrets }
}

export async function play (schedule: Schedule): Promise<string[]> {
  const world = await startWorld(schedule)
  const { far, origin, app } = world
  far.stepOf = (tag, attempt) => schedule.callers[Number(tag.slice(1))]?.steps[attempt] ?? { does: 'answers', delayMs: 0, betweenMs: 0 }
  try {
    const asks = schedule.callers.map(({ protocol, stream, model, leaves }, i): Ask => ({ tag: `r${i}`, protocol, stream, model, leaves }))
    const heard = await Promise.all(asks.map(async (ask, i) => {
      await wait(schedule.callers[i]?.startMs)
      return await hear(origin, ask, () => far.of(ask.tag).length)
    }))
    await allSettled(world, asks)
    // What was written before its caller was gone may still be on its way.
    await wait(50)
    const before = far.arrivals.length
    const someLeft = heard.some(({ left }) => left)
    if (someLeft) await wait(attemptTimeoutMs + 20)
    const late = far.arrivals.length > before ? ['something was sent when all was settled'] : []
    return [...late, ...asks.flatMap((ask, i) => ofRequest(world, schedule, ask, heard[i])), ...await ofAll(world, asks.length, someLeft)]
  } finally {
    await app.close()
    await far.close()
  }
}

/** A caller that leaves before its request has come is none. Silence in a reply that nobody reads any more is found out within a second or two. */
async function allSettled ({ far, settled }: World, asks: readonly Ask[]): Promise<void> {
  const isSettled = ({ tag }: Ask): boolean => settled.some(({ body }) => body?.toString().includes(`${tag}.`))
  for (let waited = 0; waited < 1_000; waited += 1) {
    if (asks.every((ask) => isSettled(ask) || (waited > 20 && far.of(ask.tag).length === 0))) return
    await wait(10)
  }
}

/** What one request must keep to, and did not. */
function ofRequest ({ far, settled, secrets }: World, { attempts: most }: Schedule, ask: Ask, heard: Heard | undefined): string[] {
  const broken: string[] = []
  const check = (holds: boolean, what: string): void => { if (!holds) broken.push(`${ask.tag}: ${what}`) }
  const arrivals = far.of(ask.tag)
  const llms = settled.filter(({ body }) => body?.toString().includes(`${ask.tag}.`))
  const [llm] = llms
  if (heard === undefined) return ['nobody asked']
  check(llms.length === 1 || (heard.left && llms.length === 0), `settled ${llms.length} times`)
  for (const { body, secret, member } of arrivals) {
    check(body === bodyOf(ask), 'other bytes were sent')
    check(secrets.get(member)?.has(secret) === true, `${member} got ${secret}`)
  }
  const reply = parseReply(heard.bytes)
  const marks = new Set(heard.bytes.toString('latin1').match(/r\d+\.a\d+/g))
  check(marks.size <= 1, `a reply of ${[...marks].join(' and ')}`)
  check(reply === null || reply.rest === 0, 'something stands behind the reply')
  check(heard.left || reply !== null, 'no reply')
  const [mark] = marks
  const answering = arrivals.find((arrival) => arrival.mark === mark)
  if (mark !== undefined) check(answering !== undefined, 'a reply of nobody\'s')
  // What was given up may arrive late, where the machine is busy.
  const givenUp = llm?.attempts?.filter(({ result, status }) => result === 'timeout' && status === 0).length ?? 0
  if (mark !== undefined) check(arrivals.length - heard.arrivedBefore <= givenUp, 'sent again once a byte was passed')
  if (reply !== null) broken.push(...ofReply(ask.tag, reply, answering, heard.left))
  if (llm === undefined) return broken
  const told = llm.attempts ?? []
  // What had no connection, no secret or no caller any more may never have arrived.
  const came = told.filter(({ result, status }) => !(result === 'connect' || (result === 'left' && status === 0) || (result === 'timeout' && status === 0) || (result === 'credential' && status === 0)))
  check(isWithin(arrivals.map(({ member }) => member), told.map(({ upstream }) => upstream)), `arrived at ${arrivals.map(({ member }) => member).join()}, told ${JSON.stringify(told)}`)
  check(isWithin(came.map(({ upstream }) => upstream), arrivals.map(({ member }) => member)), `told ${JSON.stringify(told)}, arrived at ${arrivals.map(({ member }) => member).join()}`)
  check(arrivals.length <= most + 1 && told.filter(({ result }) => result !== 'credential').length <= most, `${told.length} attempts`)
  const tokens = llm.usage === null ? 0 : [...leafTokens(llm.usage)].reduce((sum, n) => sum + n, 0)
  const may = tokensOf(arrivals, answering, heard.left)
  check(may.has(tokens), `${tokens} tokens, and not ${[...may].join(' or ')}`)
  if (!heard.left && reply?.clean === true && answering?.whole === true && answering.status === 200 && !['fails_first'].includes(answering.step.does)) check(llm.outcome === 'ok', `${llm.outcome} of a whole reply`)
  return broken
}

/** A reply is one member's, as far as it came, or one native error. */
function ofReply (tag: string, { status, mark, body, clean }: Reply, answering: Arrival | undefined, left: boolean): string[] {
  const broken: string[] = []
  const check = (holds: boolean, what: string): void => { if (!holds) broken.push(`${tag}: ${what}`) }
  if (answering === undefined) {
    check(left || clean, 'an error of ours was cut')
    if (mark === null && !left) check(status >= 400 && isError(body), `${status} without a member: ${body.toString().slice(0, 200)}`)
    return broken
  }
  check(status === answering.status, `${status} in place of ${answering.status}`)
  const said = Buffer.concat(answering.pieces.map(({ bytes }) => bytes))
  const passed = body.subarray(0, Math.min(body.length, answering.sentBytes))
  check(passed.equals(said.subarray(0, passed.length)), 'other bytes than the member sent')
  const rest = body.subarray(passed.length).toString()
  check(!/r\d+\.a\d/.test(rest), 'a member\'s words behind its end')
  if (left) return broken
  if (answering.whole) check(clean && body.equals(said), `a whole reply was not passed on: ${body.length} of ${said.length} bytes`)
  else check(!clean || /error/.test(rest), 'a reply that broke off ended cleanly')
  return broken
}

function isError (body: Buffer): boolean {
  const document: unknown = JSON.parse(body.toString())
  return typeof document === 'object' && document !== null && 'error' in document
}

/** What may be counted: what the answering member said it used, as far as it came. */
function tokensOf (arrivals: readonly Arrival[], answering: Arrival | undefined, left: boolean): ReadonlySet<number> {
  // Who left may have had no byte of it yet.
  const some = left ? arrivals : answering === undefined ? [] : [answering]
  return new Set([...answering === undefined || left ? [0] : [], ...some.flatMap((arrival) => told(arrival, left))])
}

function told ({ pieces, sentBytes, whole, status }: Arrival, left: boolean): number[] {
  let at = 0
  let known = 0
  const all = [0]
  for (const { bytes, tokens } of pieces) {
    at += bytes.length
    all.push(tokens)
    if (at > sentBytes) return left ? all : [known, tokens]
    known = tokens
  }
  return left || !whole || status !== 200 ? all : [known]
}

function isWithin (some: readonly string[], all: readonly string[]): boolean {
  let at = 0
  for (const each of all) if (at < some.length && some[at] === each) at += 1
  return at === some.length
}

/** What must be true when all is over. */
async function ofAll ({ app, balances, ledger, settled, settlements }: World, asked: number, someLeft: boolean): Promise<string[]> {
  const broken: string[] = []
  const check = (holds: boolean, what: string): void => { if (!holds) broken.push(what) }
  check(someLeft || settled.length === asked, `${settled.length} of ${asked} were settled`)
  const metrics = gatewayOf(app).metrics
  const read = (name: string): ReadonlyArray<{ labels: Readonly<Record<string, string>>, value: number }> => {
    return (metrics.find((each) => each.name === `llm_gateway_${name}`)?.read() ?? []).map((cell) => ({ labels: cell.labels, value: Number(Reflect.get(cell, 'value')) }))
  }
  const total = (name: string): number => read(name).reduce((sum, { value }) => sum + value, 0)
  const attempts = settled.flatMap((llm) => llm.attempts ?? [])
  const named = ({ upstream, result }: { upstream: string, result: string }): string => `${upstream} ${result}`
  const counted = read('upstream_attempts_total').map(({ labels, value }) => `${String(labels['upstream'])} ${String(labels['result'])} ${value}`).sort()
  const expected = [...new Set(attempts.map(named))].map((name) => `${name} ${attempts.filter((attempt) => named(attempt) === name).length}`).sort()
  check(counted.join() === expected.join(), `attempts: counted ${counted.join()}, made ${expected.join()}`)
  check(total('upstream_active_requests') === 0, 'a member still counts as busy')
  check(total('requests_total') === settled.length, `${total('requests_total')} requests counted of ${settled.length}`)
  const used = settled.flatMap(({ usage }) => usage === null ? [] : [...leafTokens(usage)]).reduce((sum, n) => sum + n, 0)
  check(total('tokens_total') === used, `${total('tokens_total')} tokens counted of ${used}`)
  const account = await quiet(balances)
  check(account.held === 0 && account.active === 0, `${account.held} tokens and ${account.active} places are still held`)
  const records = []
  for await (const record of ledger.read()) records.push(record)
  check(account.spent === records.reduce((sum, { charged }) => sum + charged, 0), `${account.spent} spent, ${JSON.stringify(records.map(({ charged }) => charged))} recorded`)
  check(new Set(records.map(({ id }) => id)).size === records.length, 'a request was recorded twice')
  for (const [id, times] of settlements) check(times === 1, `${id} was settled ${times} times`)
  return broken
}

async function quiet (balances: Balances): Promise<{ held: number, active: number, spent: number }> {
  for (let tries = 0; ; tries += 1) {
    const account = await balances.read('all')
    if ((account.held === 0 && account.active === 0) || tries === 100) return account
    await wait(10)
  }
}
