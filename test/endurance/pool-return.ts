/** All members are out, and are back at the same moment: each request was answered, and none of them gets the load of all. */
import { setTimeout as wait } from 'node:timers/promises'
import { startUpstream } from '../helpers/upstream.js'
import { chat, chatOf, startPoolApp } from './pool-app.js'
import { quantile, type Report } from './processes.js'

export interface ReturnOptions {
  readonly members: number
  readonly perSecond: number
  readonly outMs: number
  readonly deadlineMs: number
}

/** What a member may get in the first second, by an even share. */
const maxShare = 2

export async function allReturn ({ members: count, perSecond, outMs, deadlineMs }: ReturnOptions): Promise<Report> {
  const members = await Promise.all(Array.from({ length: count }, async () => await startUpstream()))
  const { origin, close } = await startPoolApp(Object.fromEntries(members.map((member, i) => [`m${i}`, member])), { deadlineMs })
  const violations: string[] = []
  const times: number[] = []
  let isOut = true
  for (const member of members) member.respond = () => isOut ? { status: 503, body: { error: { message: 'out' } } } : null
  const running: Array<Promise<void>> = []
  let refusedSince = 0
  async function one (): Promise<void> {
    const askedOut = isOut
    const { status, ms } = await chat(origin, chatOf('gpt-5'))
    times.push(ms)
    if (status !== 200 && status !== 503) violations.push(`a caller got ${status}`)
    if (status !== 200 && !askedOut) refusedSince += 1
  }
  async function load (forMs: number): Promise<void> {
    for (const until = performance.now() + forMs; performance.now() < until; await wait(1_000 / perSecond)) running.push(one())
  }
  await load(outMs)
  const before = members.map(({ seen }) => seen.length)
  isOut = false
  await load(1_000)
  const first = members.map(({ seen }, i) => seen.length - Number(before[i]))
  await Promise.all(running)
  const even = first.reduce((sum, n) => sum + n, 0) / count
  const share = Math.round(Math.max(...first) / even * 100) / 100
  if (share > maxShare) violations.push(`a member got ${share} times its share: ${first.join()}`)
  if (refusedSince > 0) violations.push(`${refusedSince} were refused when all were back`)
  const longestMs = quantile(times, 1)
  if (longestMs > deadlineMs + 1_000) violations.push(`a caller waited for ${longestMs} ms`)
  await close()
  await Promise.all(members.map(async (member) => await member.close()))
  return { violations, slow: [], requests: running.length, firstSecond: first.join(), share, longestMs }
}
