/** Callers that leave while the second member of their request is being asked: it is cancelled at once, and nothing is sent afterwards. */
import { setTimeout as wait } from 'node:timers/promises'
import { call } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { inParallel } from './caller.js'
import { chatOf, startPoolApp } from './pool-app.js'
import { quantile, type Report } from './processes.js'

export interface LeaversOptions {
  readonly callers: number
  readonly atOnce: number
}

const longestMs = 100

export async function leavers ({ callers, atOnce }: LeaversOptions): Promise<Report> {
  const members = { one: await startUpstream(), other: await startUpstream() }
  const { origin, metric, close } = await startPoolApp(members, { retryOn: [429, 'timeout', 'reset'] })
  const violations: string[] = []
  const times: number[] = []
  const arrived = new Map<string, number>()
  const second = new Map<string, (aborted: Promise<boolean>) => void>()
  for (const member of Object.values(members)) {
    member.respond = ({ json, aborted }) => {
      const model = String(json['model'])
      arrived.set(model, (arrived.get(model) ?? 0) + 1)
      // A limit is kept by model, so that each request meets it anew.
      if (arrived.get(model) === 1) return { status: 429, body: {} }
      second.get(model)?.(aborted)
      return { stallAt: 'headers' }
    }
  }
  // Few at a time: more would find the budget for retries spent.
  await inParallel(callers, atOnce, async (i) => {
    const { request } = call(`${origin}/v1/chat/completions`, { body: chatOf(`m${i}`) })
    let since = 0
    const cancelled = new Promise<boolean>((resolve) => {
      second.set(`m${i}`, (aborted) => {
        since = performance.now()
        request.destroy()
        aborted.then(resolve)
      })
    })
    const isCancelled = await Promise.race([cancelled, wait(10_000, false)])
    if (since === 0) violations.push(`m${i} was not sent again`)
    else if (isCancelled) times.push(performance.now() - since)
    else violations.push(`m${i} was not cancelled`)
  })
  await wait(1_000)
  for (const [model, times] of arrived) if (times > 2) violations.push(`${model} was sent ${times} times`)
  const active = metric('upstream_active_requests')
  if (active !== 0) violations.push(`${active} requests still count as active`)
  await close()
  await Promise.all(Object.values(members).map(async (member) => await member.close()))
  const cancelledMaxMs = quantile(times, 1)
  return {
    violations,
    slow: cancelledMaxMs <= longestMs ? [] : [`cancelled after ${cancelledMaxMs} ms`],
    callers,
    cancelledMedianMs: quantile(times, 0.5),
    cancelledMaxMs,
  }
}
