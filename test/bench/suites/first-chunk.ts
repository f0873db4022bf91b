/** Time to the first chunk of a stream, at a rate that leaves every target idle for most of the time. */
import { closed, generations, lane, open, warmed, type Lane, type Scene } from '../rounds.js'
import type { Findings } from '../report.js'
import type { Session } from '../session.js'
import type { Target } from '../target.js'
import { verifyTarget } from '../verify.js'
import { firstByteMs, level, overBlocks, quartilesOf, type Block } from '../windows.js'

/** What a target adds to the time that the upstream itself takes to its first chunk, milliseconds. */
const added = (block: Block, ...names: string[]): number => firstByteMs(block(...names)) - firstByteMs(block('direct'))
const overBare = (block: Block): number => added(block, 'chain') / added(block, 'd', 'd2')

/** All are warmed alike, by whole replies and by streams at once: none meets its first caller in the measurement. */
async function scene (session: Session): Promise<Scene> {
  const chain = await session.start('chain')
  const bare = [await session.start('d'), await session.start('d2', 'd')]
  const beside = session.mode === 'full' ? [await session.start('e')] : []
  const targets: Target[] = [...bare.slice(0, 1), chain, session.direct(), ...bare.slice(1), ...beside]
  const lanesOf = (model: string): Lane[] => targets.map(target =>
    lane(target, session.work(model), target.name === 'chain' ? 'as-upstream' : 'as-caller'))
  const [whole, atOnce, lanes] = [lanesOf('bench-small'), lanesOf('bench-burst'), lanesOf('bench-first')]
  await warmed(session, whole, closed(64), session.pick({ quick: 300, full: 1_000 }), session.pick({ quick: 0, full: 8_000 }))
  await warmed(session, atOnce, closed(12), session.pick({ quick: 250, full: 1_000 }), session.pick({ quick: 0, full: 2_000 }))
  return { lanes, verify: async () => await verifyTarget(chain, session.work('bench-first'), [...whole, ...atOnce, ...lanes]) }
}

export async function firstChunk (session: Session): Promise<Findings> {
  const results = await generations(session, session.pick({ quick: 1, full: 2 }), () => scene(session), open(150), session.pick({
    quick: { rounds: 4, windowMs: 250, warmMs: 0 },
    full: { rounds: 8, windowMs: 300, warmMs: 0 },
  }))
  return {
    rows: [{
      name: 'ttfc_vs_d',
      measure: 'added time to first chunk, over d\'s',
      value: overBlocks(results, overBare),
      quartiles: quartilesOf(results, overBare),
      reach: { atMost: 1 },
      aaSpread: Math.abs(overBlocks(results, block => added(block, 'd2') / added(block, 'd')) - 1),
    }],
    details: [...results.keys()].map(name => ({
      suite: 'first',
      target: name,
      'first chunk ms': level(results, firstByteMs, name),
      'added ms': overBlocks(results, block => added(block, name)),
    })),
  }
}
