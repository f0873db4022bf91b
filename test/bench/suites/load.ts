/**
 * What happens beyond the usual load: more requests than may run, and bodies of the worst shapes. Measured by the long runs of
 * `test/endurance/`.
 */
import { spawn } from 'node:child_process'
import { cpus } from 'node:os'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { placement } from '../machine.js'
import type { Detail, Findings, Row } from '../report.js'
import type { Session } from '../session.js'
import { spread } from '../stats.js'

const root = fileURLToPath(new URL('../../../../', import.meta.url))

type Figures = Readonly<Record<string, unknown>>

/**
 * Runs one of them in a process of its own, on any core: not on the driver's alone, which it would inherit. Rejects where a rule was
 * broken; what was slow is told by its figures.
 */
async function endurance (name: string, options: object): Promise<Figures> {
  const command = [process.execPath, '--import=./test/loader/register.js', 'test/scripts/endurance.ts', name, JSON.stringify(options)]
  const [program = '', ...rest] = placement.driver === null ? command : ['taskset', '-c', `0-${cpus().length - 1}`, ...command]
  const child = spawn(program, rest, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
  const printed = await text(child.stdout)
  if (!printed.startsWith(`${name} {`)) throw new Error(`${name} told nothing: ${printed}`)
  const figures: Figures = JSON.parse(printed.slice(name.length))
  const { violations } = figures
  if (!Array.isArray(violations) || violations.length > 0) throw new Error(`${name}: ${String(violations)}`)
  return figures
}

/** The same twice: how far the two are apart says what the run can tell. */
async function twice (name: string, options: object): Promise<readonly [Figures, Figures]> {
  return [await endurance(name, options), await endurance(name, options)]
}

function row (
  name: string, measure: string, reach: Row['reach'], [first, second]: readonly [number, number], worse: (...values: number[]) => number
): Row {
  return { name, measure, value: worse(first, second), reach, aaSpread: spread(first, second) }
}

function longestStall ({ figures }: Figures): number {
  return Math.max(...Object.values(Object(figures)).map((shape) => Number(Reflect.get(Object(shape), 'longestMs'))))
}

/** The worse one of the two counts. */
export async function load (session: Session): Promise<Findings> {
  const over = await twice('overload', { maxActive: 100, replyMs: 200, seconds: session.pick({ quick: 2, full: 4 }) })
  const bodies = await twice('big-bodies', { megabytes: session.pick({ quick: 8, full: 32 }), atOnce: 1, heapMb: 512 })
  const of = (name: string): readonly [number, number] => [Number(over[0][name]), Number(over[1][name])]
  const rows = [
    row('overload_goodput', 'goodput at three times of what may run, over the peak', { atLeast: 0.9 }, of('goodput'), Math.min),
    row('overload_refusal_p99_ms', 'p99 of a refusal meanwhile, ms', { atMost: 50 }, of('refusalMs'), Math.max),
    row(
      'big_body_stall_ms',
      'longest wait of another caller while one sends a large body of the worst shapes, ms',
      { atMost: 20 },
      [longestStall(bodies[0]), longestStall(bodies[1])],
      Math.max
    ),
  ]
  const details: Detail[] = [
    ...over.map(({ served, refused, recoveryMs }, at) => ({
      suite: 'load', target: `overload ${at + 1}`, served: Number(served), refused: Number(refused), 'recovery ms': Number(recoveryMs),
    })),
    ...bodies.flatMap(({ figures }, at) => Object.entries(Object(figures)).map(([shape, told]) => ({
      suite: 'load', target: `${shape} ${at + 1}`, 'longest ms': Number(Reflect.get(Object(told), 'longestMs')),
    }))),
  ]
  return { rows, details }
}
