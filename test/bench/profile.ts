/** `--profile TARGET`: where a target's processor time goes once it is warm, by package and by function. */
import { table } from './report.js'
import { closed, interleave, lane, refusedLane, type Lane } from './rounds.js'
import type { Session } from './session.js'
import type { Target } from './target.js'

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

function isProfile (value: unknown): value is Profile {
  return typeof value === 'object' && value !== null && 'nodes' in value && 'samples' in value && 'timeDeltas' in value
}

function asProfile (value: unknown): Profile {
  if (isProfile(value)) return value
  throw new Error('the target sent no profile')
}

/** A package, a part of Node, or a folder of ours. */
function packageOf (frame: Frame): string {
  if (frame.url === '') return frame.functionName
  const { url } = frame
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

/** Servers that put the upstream's own credential into a request. */
const ours = new Set(['chain', 'costs', 'pool', 'dropin', 's', 's-memory', 's-redis'])

function callersOf (model: string): number {
  return model === 'bench-small' || model === 'refused' ? 64 : 12
}

interface Profiled {
  readonly name: string
  readonly profile: Profile
  readonly requests: number
}

/** One column for each target, ordered by what the first spends beyond the second. */
function print (title: string, found: readonly Profiled[], nameOf: (frame: Frame) => string, most: number): void {
  const columns = found.map(({ profile, requests }) => new Map(sums(profile, nameOf).map(([name, us]) => [name, us / requests])))
  const [first = new Map<string, number>(), second] = columns
  const beyond = (name: string): number => (first.get(name) ?? 0) - (second?.get(name) ?? 0)
  const names = [...new Set(columns.flatMap(column => [...column.keys()]))].sort((a, b) => beyond(b) - beyond(a)).slice(0, most)
  const total = columns.map(column => [...column.values()].reduce((sum, us) => sum + us, 0))
  const cells = (values: readonly number[]): string[] => [
    ...values.map(us => us.toFixed(2)),
    ...values.length > 1 ? [((values[0] ?? 0) - (values[1] ?? 0)).toFixed(2)] : [((values[0] ?? 0) / (total[0] ?? 1) * 100).toFixed(1)],
  ]
  const head = [title, ...found.map(({ name }) => `${name}, us`), found.length > 1 ? 'beyond' : '%']
  const body = names.map(name => [name, ...cells(columns.map(column => column.get(name) ?? 0))])
  process.stdout.write('\n' + table(head, [['all', ...cells(total)], ...body]) + '\n')
}

function laneOf (session: Session, target: Target, model: string): Lane {
  if (model === 'refused') return refusedLane(target, session.work('bench-small'))
  return lane(target, session.work(model), ours.has(target.name) ? 'as-upstream' : 'as-caller')
}

async function record (session: Session, name: string, model: string): Promise<Profiled> {
  const target = await session.start(name)
  const each = laneOf(session, target, model)
  const drive = closed(callersOf(model))
  await interleave(session, [each], drive, { rounds: 0, windowMs: 0, warmMs: 1_500 })
  const warmed = each.answered
  await target.ask('sample')
  await interleave(session, [each], drive, { rounds: 4, windowMs: session.pick({ quick: 1_000, full: 3_400 }), warmMs: 0 })
  const profile = asProfile(await target.ask('profile'))
  await session.stop()
  return { name, profile, requests: each.answered - warmed }
}

/** `chain`, `chain:bench-events`, or `chain:bench-events,e:bench-events` for what one spends beyond the other. */
export async function profile (session: Session, targets: string): Promise<void> {
  const found: Profiled[] = []
  for (const text of targets.split(',')) {
    const [name = '', model = 'bench-small'] = text.split(':')
    found.push(await record(session, name, model))
  }
  print('by package', found, packageOf, 30)
  print('by function', found, placeOf, 60)
}
