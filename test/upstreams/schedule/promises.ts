/** What must hold of each request and of all together, whatever the schedule. */
import { setTimeout as wait } from 'node:timers/promises'
import { gatewayOf } from '../../../plugins/core/gateway.js'
import { leafTokens } from '../../../plugins/core/call/measures.js'
import type { Balances } from '../../../plugins/state/index.js'
import { bodyOf, parseReply, type Ask, type Heard, type Reply } from './caller.js'
import type { Arrival } from './far-side.js'
import type { Schedule, World } from './world.js'

/** What one request must keep to, and did not. */
export function ofRequest ({ far, settled, secrets }: World, { attempts: most }: Schedule, ask: Ask, heard: Heard | undefined): string[] {
  const broken: string[] = []
  const check = (holds: boolean, what: string): void => { if (!holds) broken.push(`${ask.tag}: ${what}`) }
  const arrivals = far.of(ask.tag)
  const llms = settled.filter(({ body: { bytes: body } }) => body?.toString().includes(`${ask.tag}.`))
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
  const givenUp = llm?.routing.attempts?.filter(({ result, status }) => result === 'timeout' && status === 0).length ?? 0
  if (mark !== undefined) check(arrivals.length - heard.arrivedBefore <= givenUp, 'sent again once a byte was passed')
  if (reply !== null) broken.push(...ofReply(ask.tag, reply, answering, heard.left))
  if (llm === undefined) return broken
  const told = llm.routing.attempts ?? []
  // What had no connection, no secret or no caller any more may never have arrived.
  const came = told.filter(({ result, status }) => !(result === 'connect' || (result === 'left' && status === 0) ||
    (result === 'timeout' && status === 0) || (result === 'credential' && status === 0)))
  // In any order: what was given up may arrive late.
  check(
    isWithin(arrivals.map(({ member }) => member).sort(), told.map(({ upstream }) => upstream).sort()),
    `arrived at ${arrivals.map(({ member }) => member).join()}, told ${JSON.stringify(told)}`
  )
  check(
    isWithin(came.map(({ upstream }) => upstream), arrivals.map(({ member }) => member)),
    `told ${JSON.stringify(told)}, arrived at ${arrivals.map(({ member }) => member).join()}`
  )
  check(arrivals.length <= most + 1 && told.filter(({ result }) => result !== 'credential').length <= most, `${told.length} attempts`)
  const tokens = llm.usage.tokens === null ? 0 : [...leafTokens(llm.usage.tokens)].reduce((sum, n) => sum + n, 0)
  const may = tokensOf(arrivals, answering, heard.left)
  check(may.has(tokens), `${tokens} tokens, and not ${[...may].join(' or ')}`)
  if (!heard.left && reply?.clean === true && answering?.whole === true && answering.status === 200 && !['fails_first'].includes(
    answering.step.does
  )) {
    check(llm.outcome === 'ok', `${llm.outcome} of a whole reply`)
  }
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
  // Our own last event has the id that the stream told.
  check(!/r\d+\.a\d/.test(rest.replace(`"id":"${mark}"`, '')), 'a member\'s words behind its end')
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
export async function ofAll ({ app, balances, ledger, settled, settlements }: World, asked: number, someLeft: boolean): Promise<string[]> {
  const broken: string[] = []
  const check = (holds: boolean, what: string): void => { if (!holds) broken.push(what) }
  check(someLeft || settled.length === asked, `${settled.length} of ${asked} were settled`)
  const metrics = gatewayOf(app).metrics
  const read = (name: string): ReadonlyArray<{ labels: Readonly<Record<string, string>>, value: number }> => {
    return (metrics.find((each) => each.name === `llm_gateway_${name}`)?.read() ?? []).map((cell) => ({
      labels: cell.labels, value: Number(Reflect.get(cell, 'value')),
    }))
  }
  const total = (name: string): number => read(name).reduce((sum, { value }) => sum + value, 0)
  const attempts = settled.flatMap((llm) => llm.routing.attempts ?? [])
  const named = ({ upstream, result }: { upstream: string, result: string }): string => `${upstream} ${result}`
  // What may come is there at 0.
  const counted = read('upstream_attempts_total')
    .filter(({ value }) => value > 0)
    .map(({ labels, value }) => `${String(labels['upstream'])} ${String(labels['result'])} ${value}`)
    .sort()
  const expected = [...new Set(attempts.map(named))]
    .map((name) => `${name} ${attempts.filter((attempt) => named(attempt) === name).length}`)
    .sort()
  check(counted.join() === expected.join(), `attempts: counted ${counted.join()}, made ${expected.join()}`)
  check(total('upstream_active_requests') === 0, 'a member still counts as busy')
  check(total('requests_total') === settled.length, `${total('requests_total')} requests counted of ${settled.length}`)
  const used = settled.flatMap(({ usage: { tokens } }) => tokens === null ? [] : [...leafTokens(tokens)]).reduce((sum, n) => sum + n, 0)
  check(total('tokens_total') === used, `${total('tokens_total')} tokens counted of ${used}`)
  const account = await quiet(balances)
  check(account.held === 0 && account.active === 0, `${account.held} tokens and ${account.active} places are still held`)
  const records = []
  for await (const record of ledger.read()) records.push(record)
  check(
    account.spent === records.reduce((sum, { charged }) => sum + charged, 0),
    `${account.spent} spent, ${JSON.stringify(records.map(({ charged }) => charged))} recorded`
  )
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
