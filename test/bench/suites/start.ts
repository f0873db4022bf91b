/** What the plugins add to the start of an app and to its memory at rest. */
import { setTimeout as sleep } from 'node:timers/promises'
import { pairSpread, type Findings } from '../report.js'
import type { Session } from '../session.js'
import { quantile } from '../stats.js'

interface Start {
  readonly ms: number[]
  readonly megabytes: number[]
}

export async function start (session: Session): Promise<Findings> {
  const names = ['d', 'dropin', 'e', 'chain', 'd2', 'e2']
  const starts = new Map<string, Start>(names.map(name => [name, { ms: [], megabytes: [] }]))
  const rounds = session.pick({ quick: 3, full: 15 })
  for (let round = 0; round < rounds; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const target = await session.start(name, name.replace('2', ''))
      starts.get(name)?.ms.push(target.startMs)
      await sleep(150)
      starts.get(name)?.megabytes.push((await target.usage()).rssBytes / 2 ** 20)
      await session.stop()
    }
  }
  const ms = (...of: string[]): number => quantile(of.flatMap(name => starts.get(name)?.ms ?? []), 0.25)
  const megabytes = (...of: string[]): number => quantile(of.flatMap(name => starts.get(name)?.megabytes ?? []), 0.5)
  return {
    rows: [{
      name: 'cold_start_extra_ms',
      measure: 'start to listening beyond the bare http-proxy app, ms',
      value: ms('dropin') - ms('d', 'd2'),
      reach: { atMost: 60 },
      aaSpread: pairSpread(ms, 'd', 'd2'),
    }, {
      name: 'idle_extra_rss_mb',
      measure: 'memory at rest beyond the bare http-proxy app, MB',
      value: megabytes('dropin') - megabytes('d', 'd2'),
      reach: { atMost: 15 },
      aaSpread: pairSpread(megabytes, 'd', 'd2'),
    }],
    details: names.map(name => ({ suite: 'start', target: name, 'start ms': ms(name), 'idle MB': megabytes(name) })),
  }
}
