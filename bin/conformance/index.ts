/**
 * The conformance kit: numbered black-box checks against any gateway. It speaks only HTTP, so that two gateways can be compared; with
 * `--upstream-port` it also plays the provider behind the gateway.
 */
import { writeFile } from 'node:fs/promises'
import type { Check, Kind } from './check.js'
import { checks } from './checks/index.js'
import { missingEndpoints, NotApplicable, without } from './endpoints.js'
import { FarSide } from './far-side.js'
import { UsageError, type Io } from '../io.js'
import { needs } from './needs.js'
import { readOptions, type Options } from './options.js'
import { holdsFor } from './profiles.js'
import { junit, resultLines, resultOf, tally, type Result } from './report.js'
import { createSubject } from './subject.js'

/** Runs the checks. The exit code is 1 if one failed. */
export async function conformance (_file: string, args: string[], io: Io): Promise<number> {
  const options = readOptions(args)
  const chosen = checks.filter(({ number }) => options.only.length === 0
    ? holdsFor(options.profile, number)
    : options.only.includes(number))
  if (chosen.length === 0) throw new UsageError('--check names no check')
  const far = new FarSide()
  if (options.upstreamPort !== null) await far.listen(options.upstreamPort)
  const results: Result[] = []
  try {
    const missing = await missingEndpoints(createSubject(options, far, AbortSignal.timeout(options.timeoutMs)))
    if (missing.size > 0) io.err(`not there: ${[...missing].join(', ')}`)
    for (const [index, check] of chosen.entries()) {
      const result = await runCheck(check, options, far, missing)
      io.err(`[${index + 1}/${chosen.length}] ${check.number} ${result.verdict} ${check.title} (${result.ms} ms)`)
      results.push(result)
    }
  } finally {
    await far.close()
  }
  return await report(options, results, io)
}

async function report (options: Options, results: readonly Result[], io: Io): Promise<number> {
  const counts = tally(results)
  for (const line of resultLines(results)) io.out(line)
  io.out(`${counts.pass} passed, ${counts.fail} failed, ${counts['n/a']} not applicable`)
  if (options.json !== '') {
    await writeFile(options.json, JSON.stringify({ baseUrl: options.baseUrl, profile: options.profile, counts, results }, null, 2) + '\n')
  }
  if (options.junit !== '') await writeFile(options.junit, junit(results))
  return counts.fail === 0 ? 0 : 1
}

async function runCheck (check: Check, options: Options, far: FarSide, absent: ReadonlySet<Kind>): Promise<Result> {
  const missing = check.needs.map((need) => needs[need]).filter(({ isMet }) => !isMet(options))
  if (missing.length > 0) return resultOf(check, 'n/a', `needs ${missing.map(({ from }) => from).join(', ')}`)
  far.reset()
  const limit = new AbortController()
  const subject = without(absent, createSubject(options, far, limit.signal))
  const startedAt = performance.now()
  const [verdict, seen] = await within(options.timeoutMs, check.run(subject)).then(
    (seen) => ['pass', seen] as const,
    (error) => [error instanceof NotApplicable ? 'n/a' : 'fail', messageOf(error)] as const)
  limit.abort()
  return resultOf(check, verdict, seen, performance.now() - startedAt)
}

async function within<T> (ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

/** The message of an error, without its name. */
function messageOf (error: unknown): string {
  return String(error).replace(/^\w*Error(?: \[\w+\])?: /, '')
}
