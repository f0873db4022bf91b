/**
 * A pool whose members fail in their own ways, under load: one is killed, one hangs, one answers 30 % with 503, and one is well.
 * No caller sees a failure that a healthy member could have served, and the load is not multiplied.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { replyFixture, startUpstream, type Upstream } from '../helpers/upstream.js'
import { chat, chatOf, startPoolApp } from './pool-app.js'
import { quantile, type Report } from './processes.js'

export interface FailingOptions {
  readonly requests: number
  readonly perSecond: number
  readonly attemptTimeoutMs: number
  /** Sends for each request. Few requests have a budget of three retries at once, which is more than a fifth of them. */
  readonly maxAmplification: number
}

const whole = { json: replyFixture('chat_completions.json').toString(), sse: replyFixture('chat_completions.include_usage.sse').toString() }

export async function failingMembers ({ requests, perSecond, attemptTimeoutMs, maxAmplification }: FailingOptions): Promise<Report> {
  const [killed, hung, shaky, well] = [await startUpstream(), await startUpstream(), await startUpstream(), await startUpstream()]
  const members = { killed, hung, shaky, well }
  const { origin, metric, close } = await startPoolApp(members, {
    attempts: 4, retryOn: ['connect', 'reset', 'timeout', 429, 503, 529], attemptTimeoutMs,
  })
  const violations: string[] = []
  const times: number[] = []
  async function one (stream: boolean): Promise<void> {
    const { status, text, ms } = await chat(origin, chatOf('gpt-5', stream))
    times.push(ms)
    if (status !== 200) violations.push(`a caller got ${status}: ${text.slice(0, 200)}`)
    else if (text !== (stream ? whole.sse : whole.json)) violations.push('a reply is not one member\'s')
  }
  await Promise.all([one(false), one(true)])
  await killed.close()
  hung.respond = () => ({ stallAt: 'headers' })
  let asked = 0
  shaky.respond = () => {
    asked += 1
    return asked % 10 < 3 ? { status: 503, body: { error: { message: 'overloaded' } } } : null
  }
  const before = sends(members)
  const running: Array<Promise<void>> = []
  for (let sent = 0; sent < requests; sent += 1) {
    running.push(one(sent % 4 === 0))
    await wait(1_000 / perSecond)
  }
  await Promise.all(running)
  const amplification = (sends(members) - before) / requests
  if (amplification > maxAmplification) violations.push(`${amplification} sends for each request`)
  const active = metric('upstream_active_requests')
  if (active !== 0) violations.push(`${active} requests still count as active`)
  const figures = {
    requests,
    amplification,
    attempts: metric('upstream_attempts_total'),
    failovers: metric('failovers_total'),
    medianMs: quantile(times, 0.5),
    p99Ms: quantile(times, 0.99),
  }
  await close()
  await Promise.all([hung, shaky, well].map(async (member) => await member.close()))
  return { violations, slow: [], ...figures }
}

function sends (members: Readonly<Record<string, Upstream>>): number {
  return Object.values(members).reduce((sum, { seen }) => sum + seen.length, 0)
}
