/** `--growth`: one table of costs as work grows. Each line should stay flat, or grow in step with the work itself. */
import { writeFileSync } from 'node:fs'
import { describeMachine } from '../machine.js'
import { table } from '../report.js'
import type { Session } from '../session.js'
import { lines, type Line, type Point } from './lines.js'

interface Measured extends Line {
  readonly points: readonly Point[]
}

/** How much the cost, or the cost of one, rises from the smallest size to the largest. */
function rise ({ shape, points }: Measured): number {
  const [first, last] = [points[0], points.at(-1)]
  const cost = (point: Point | undefined): number => point === undefined ? NaN : shape === 'flat' ? point.cost : point.cost / point.size
  return cost(last) / cost(first)
}

function rows (measured: readonly Measured[]): string[][] {
  return measured.flatMap(line => line.points.map(({ size, cost, perSecond }) => [
    line.what, String(size), cost.toPrecision(4), line.unit, line.shape === 'linear' ? (cost / size).toPrecision(3) : '', perSecond?.toFixed(0) ?? '',
  ]))
}

function verdicts (measured: readonly Measured[]): string[][] {
  return measured.map(line => [
    line.what, line.shape, `${line.points[0]?.size ?? '-'} to ${line.points.at(-1)?.size ?? '-'}`, rise(line).toFixed(2), line.why,
  ])
}

function asJson (session: Session, measured: readonly Measured[], seconds: number): Record<string, unknown> {
  return {
    growth: measured.map(line => ({ what: line.what, unit: line.unit, shape: line.shape, rise: rise(line), why: line.why, points: line.points })),
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
    if (json !== null) writeFileSync(json, JSON.stringify(asJson(session, measured, (performance.now() - startedAt) / 1000), null, 2) + '\n')
  }
  return '\n' + table(['what grows', 'size', 'cost', 'unit', 'cost of one', 'req/s'], rows(measured)) + '\n\n' +
    table(['what grows', 'should be', 'from to', 'cost (of one) times', 'note'], verdicts(measured))
}
