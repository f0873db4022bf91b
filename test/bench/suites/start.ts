/** What the plugins add to the start of an app and to its memory at rest. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Findings } from '../report.js'
import type { Session } from '../session.js'
import { median } from '../stats.js'

interface Start {
  readonly ms: number
  readonly megabytes: number
}

type Field = keyof Start

export async function start (session: Session): Promise<Findings> {
  const names = session.pick({ quick: ['d', 'dropin', 'd2'], full: ['d', 'dropin', 'chain', 'e', 'd2'] })
  const starts = new Map<string, Start[]>(names.map(name => [name, []]))
  for (let round = 0; round < session.pick({ quick: 3, full: 8 }); round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const target = await session.start(name, name.replace('2', ''), { nodeOptions: [] })
      await sleep(150)
      const megabytes = (await target.usage()).rssBytes / 2 ** 20
      starts.get(name)?.push({ ms: target.startMs, megabytes })
      await session.stop()
    }
  }
  const of = (name: string, field: Field): number[] => (starts.get(name) ?? []).map(each => each[field])
  const level = (name: string, field: Field): number => median(of(name, field))
  /** Within each round, where the machine was the same for all; then the median. */
  const paired = (field: Field, read: (dropin: number, d: number, d2: number) => number): number => {
    const [dropin, d, d2] = [of('dropin', field), of('d', field), of('d2', field)]
    return median(dropin.map((value, at) => read(value, d[at] ?? NaN, d2[at] ?? NaN)))
  }
  const extra = (field: Field): number => paired(field, (dropin, d, d2) => dropin - (d + d2) / 2)
  const twins = (field: Field): number => Math.abs(paired(field, (_, d, d2) => d2 / d) - 1)
  return {
    rows: [{
      name: 'cold_start_extra_ms',
      measure: 'start to listening beyond the bare http-proxy app, ms',
      value: extra('ms'),
      reach: { atMost: 100 },
      aaSpread: twins('ms'),
    }, {
      name: 'idle_extra_rss_mb',
      measure: 'memory at rest beyond the bare http-proxy app, MB',
      value: extra('megabytes'),
      reach: { atMost: 15 },
      aaSpread: twins('megabytes'),
    }],
    details: names.map(name => ({ suite: 'start', target: name, 'start ms': level(name, 'ms'), 'idle MB': level(name, 'megabytes') })),
  }
}
