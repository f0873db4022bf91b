/** The suites in the order in which they run. */
import type { Findings } from '../report.js'
import type { Session } from '../session.js'
import { costs } from './costs.js'
import { firstChunk } from './first-chunk.js'
import { large } from './large.js'
import { load } from './load.js'
import { openStreams } from './open-streams.js'
import { scrape } from './scrape.js'
import { small } from './small.js'
import { start } from './start.js'
import { state } from './state.js'
import { stream } from './stream.js'
import { workers } from './workers.js'

export const suites: Readonly<Record<string, (session: Session) => Promise<Findings>>> = {
  start, small, costs, state, stream, first: firstChunk, large, open: openStreams, scrape, workers, load,
}
