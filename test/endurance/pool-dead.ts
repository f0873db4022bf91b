/** What a member that is dead or hangs costs the callers of a pool once it is known to be: two pools, asked by turns. */
import { startUpstream } from '../helpers/upstream.js'
import { inParallel } from './caller.js'
import { chat, chatOf, startPoolApp } from './pool-app.js'
import { quantile, type Report } from './processes.js'

export interface DeadOptions {
  readonly requests: number
  /** Each time that it is tried costs one caller the time that an attempt may take: of few requests that is more than a hundredth. */
  readonly hangs: boolean
  readonly attemptTimeoutMs: number
}

const maxAddedMs = 5

export async function deadMember ({ requests, hangs, attemptTimeoutMs }: DeadOptions): Promise<Report> {
  const members = await Promise.all(Array.from({ length: 4 }, async () => await startUpstream()))
  const [bad, ...well] = members
  if (bad === undefined) throw new Error('no member')
  const pool = { retryOn: ['connect', 'timeout', 'reset'] as const, attemptTimeoutMs }
  const named = (list: typeof members): Record<string, typeof bad> => Object.fromEntries(list.map((member, i) => [`m${i}`, member]))
  const [withIt, without] = [await startPoolApp(named(members), pool), await startPoolApp(named(well), pool)]
  if (hangs) bad.respond = () => ({ stallAt: 'headers' })
  else await bad.close()
  const violations: string[] = []
  async function ask (origin: string, times: number[]): Promise<void> {
    const { status, ms } = await chat(origin, chatOf('gpt-5'))
    if (status === 200) times.push(ms)
    else violations.push(`a caller got ${status}`)
  }
  // Until its breaker is open, and each code was compiled.
  for (const { origin } of [withIt, without]) await inParallel(40, 3, async () => await ask(origin, []))
  const [slow, fast]: [number[], number[]] = [[], []]
  for (let i = 0; i < requests; i += 1) {
    await ask(withIt.origin, slow)
    await ask(without.origin, fast)
  }
  await Promise.all([withIt.close(), without.close()])
  await Promise.all((hangs ? members : well).map(async (member) => await member.close()))
  const addedP99Ms = Math.round((quantile(slow, 0.99) - quantile(fast, 0.99)) * 10) / 10
  return {
    violations,
    slow: addedP99Ms <= maxAddedMs ? [] : [`a member that ${hangs ? 'hangs' : 'is dead'} adds ${addedP99Ms} ms`],
    addedP99Ms,
    p99Ms: quantile(slow, 0.99),
    p99WithoutMs: quantile(fast, 0.99),
  }
}
