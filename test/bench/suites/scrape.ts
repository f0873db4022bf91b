/** What a scrape at 10,000 series holds the event loop for. */
import type { Findings } from '../report.js'
import type { Session } from '../session.js'
import { spread } from '../stats.js'

export interface Scrape {
  readonly series: number
  readonly ownMs: number
  readonly againMs: number
  readonly promMs: number
  readonly bytes: number
}

function asScrape (value: unknown): Scrape {
  if (typeof value !== 'object' || value === null) throw new Error('the target measured nothing')
  const read = (name: string): number => Number(Reflect.get(value, name))
  return { series: read('series'), ownMs: read('ownMs'), againMs: read('againMs'), promMs: read('promMs'), bytes: read('bytes') }
}

export async function measureScrape (session: Session, series: number): Promise<Scrape> {
  const target = await session.start('scrape', 'scrape', { env: { BENCH_SIZE: String(series) } })
  const found = asScrape(await target.ask('measure'))
  await session.stop()
  return found
}

export async function scrape (session: Session): Promise<Findings> {
  const all: Scrape[] = []
  for (let start = 0; start < session.pick({ quick: 1, full: 4 }); start++) all.push(await measureScrape(session, 10_000))
  const found = all.reduce((sum, each) => ({
    ...each, ownMs: sum.ownMs + each.ownMs, againMs: sum.againMs + each.againMs, promMs: sum.promMs + each.promMs,
  }))
  return {
    rows: [{
      name: 'scrape_10k_ms',
      measure: 'event loop time of a scrape at 10,000 series, ms',
      value: (found.ownMs + found.againMs) / 2 / all.length,
      reach: { atMost: 20 },
      aaSpread: spread(found.ownMs, found.againMs),
    }],
    details: [
      { suite: 'scrape', target: 'own text', series: found.series, ms: found.ownMs / all.length, 'KB of text': found.bytes / 1024 },
      { suite: 'scrape', target: 'prom-client', series: found.series, ms: found.promMs / all.length },
    ],
  }
}
