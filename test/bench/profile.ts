/** `--profile TARGET`: where a target's processor time goes under small requests, by package and by function. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { table } from './report.js'
import { closed, interleave, lane } from './rounds.js'
import type { Session } from './session.js'

interface Frame {
  readonly functionName: string
  readonly url: string
  readonly lineNumber: number
}

interface Profile {
  readonly nodes: ReadonlyArray<{ readonly id: number, readonly callFrame: Frame }>
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

/** A package, a part of Node, or a folder of ours. */
function packageOf ({ url, functionName }: Frame): string {
  if (url === '') return functionName
  const plugin = /\/dist\/(plugins\/[^/]+)/.exec(url)
  const dependency = /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)
  return plugin?.[1] ?? dependency?.[1] ?? url.replace(/^file:.*\//, '')
}

function placeOf (frame: Frame): string {
  return `${frame.functionName || '(anonymous)'} ${packageOf(frame)} ${frame.url.replace(/^.*\//, '')}:${frame.lineNumber + 1}`
}

/** Microseconds by the name that `nameOf` gives a frame, idle time left out. */
function sums (profile: Profile, nameOf: (frame: Frame) => string): Array<[name: string, us: number]> {
  const names = new Map(profile.nodes.map(({ id, callFrame }) => [id, callFrame.functionName === '(idle)' ? null : nameOf(callFrame)]))
  const found = new Map<string, number>()
  for (const [at, id] of profile.samples.entries()) {
    const name = names.get(id) ?? null
    if (name !== null) found.set(name, (found.get(name) ?? 0) + (profile.timeDeltas[at] ?? 0))
  }
  return [...found].sort((a, b) => b[1] - a[1])
}

function print (title: string, lines: Array<[name: string, us: number]>, requests: number, most: number): void {
  const all = lines.reduce((sum, [, us]) => sum + us, 0)
  const body = lines.slice(0, most).map(([name, us]) => [name, (us / requests).toFixed(2), (us / all * 100).toFixed(1)])
  process.stdout.write('\n' + table([title, 'us/request', '%'], body) + '\n')
}

export async function profile (session: Session, name: string, model: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-profile-'))
  const target = await session.start(name, name, { nodeOptions: ['--cpu-prof', '--cpu-prof-dir', folder, '--cpu-prof-interval', '200'] })
  const reaches = name === 'chain' || name === 'dropin' ? 'as-upstream' : 'as-caller'
  const each = lane(target, session.work(model), reaches)
  const plan = session.pick({
    quick: { rounds: 1, windowMs: 5_000, warmMs: 1_000 },
    full: { rounds: 1, windowMs: 20_000, warmMs: 1_000 },
  })
  await interleave(session, [each], closed(model === 'bench-small' ? 64 : 8), plan)
  await session.stop()
  const [file = ''] = readdirSync(folder)
  const found: Profile = JSON.parse(readFileSync(join(folder, file), 'utf8'))
  rmSync(folder, { recursive: true })
  print('by package', sums(found, packageOf), each.answered, 25)
  print('by function', sums(found, placeOf), each.answered, 60)
}
