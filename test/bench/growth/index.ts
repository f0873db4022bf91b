/** `--growth`: one table of costs as work grows. Each line should stay flat, or grow in step with the work itself. */
import { writeFileSync } from 'node:fs'
import { describeMachine } from '../machine.js'
import { table } from '../report.js'
import type { Session } from '../session.js'
import { lines, type Line, type Point } from './lines.js'

interface Measured extends Line {
  readonly points: readonly Point[]
}

/** Cost of one more, between each size and the one before it; what a request costs at any size is not in it. */
function steps (points: readonly Point[]): number[] {
  return points.slice(1).map((point, at) => {
    const before = points[at] ?? point
    return (point.cost - before.cost) / (point.size - before.size)
  })
}

/** Flat: the cost at the largest size over that at the smallest. Linear: the cost of one more at the largest over that before it. */
function rise ({ shape, points }: Measured): number {
  const values = shape === 'flat' ? points.map(({ cost }) => cost) : steps(points)
  const first = shape === 'flat' ? values[0] : values.at(-2)
  return (values.at(-1) ?? NaN) / (first ?? NaN)
}

function rows (measured: readonly Measured[]): string[][] {
  return measured.flatMap(({ what, unit, shape, points }) => points.map(({ size, cost, perSecond }, at) => [
    what, String(size), cost.toPrecision(4), unit, shape === 'linear' ? steps(points)[at - 1]?.toPrecision(3) ?? '' : '',
    perSecond?.toFixed(0) ?? '',
  ]))
}

function verdicts (measured: readonly Measured[]): string[][] {
  return measured.map(line => [
    line.what, line.shape, `${line.points[0]?.size ?? '-'} to ${line.points.at(-1)?.size ?? '-'}`, rise(line).toFixed(2), line.why,
  ])
}

function asJson (session: Session, measured: readonly Measured[], seconds: number): Record<string, unknown> {
  return {
    growth: measured.map(line => ({
      what: line.what, unit: line.unit, shape: line.shape, rise: rise(line), why: line.why, points: line.points,
    })),
    run: { mode: session.mode, seconds: Math.round(seconds), machine: describeMachine() },
  }
}

export async function growth (session: Session, json: string | null, only: readonly string[]): Promise<string> {
  const startedAt = performance.now()
  const measured: Measured[] = []
  for (const line of lines) {
    if (only.length > 0 && !only.some(word => line.what.startsWith(word))) continue
    session.stage = line.what
    measured.push({ ...line, points: await line.measure(session) })
    process.stdout.write(`${line.what}: ${Math.round((performance.now() - startedAt) / 1000)} s\n`)
    if (json !== null) {
      writeFileSync(json, JSON.stringify(asJson(session, measured, (performance.now() - startedAt) / 1000), null, 2) + '\n')
    }
  }
  return '\n' + table(['what grows', 'size', 'cost', 'unit', 'cost of one more', 'req/s'], rows(measured)) + '\n\n' +
    table(['what grows', 'should be', 'from to', 'rise', 'note'], verdicts(measured))
}
