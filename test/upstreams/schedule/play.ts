/** Plays one schedule against a gateway with a pool, and tells each promise that was broken. */
import { setTimeout as wait } from 'node:timers/promises'
import { hear, type Ask } from './caller.js'
import { ofAll, ofRequest } from './promises.js'
import { attemptTimeoutMs, startWorld, type Schedule, type World } from './world.js'

export async function play (schedule: Schedule): Promise<string[]> {
  const world = await startWorld(schedule)
  const { far, origin, app } = world
  far.stepOf = (tag, attempt) => schedule.callers[Number(tag.slice(1))]?.steps[attempt] ?? { does: 'answers', delayMs: 0, betweenMs: 0 }
  try {
    const asks = schedule.callers.map(({ protocol, stream, model, leaves }, i): Ask => ({ tag: `r${i}`, protocol, stream, model, leaves }))
    const heard = await Promise.all(asks.map(async (ask, i) => {
      await wait(schedule.callers[i]?.startMs)
      return await hear(origin, ask, () => far.of(ask.tag).length)
    }))
    await allSettled(world, asks)
    // What was written before its caller was gone may still be on its way.
    await wait(50)
    const before = far.arrivals.length
    const someLeft = heard.some(({ left }) => left)
    if (someLeft) await wait(attemptTimeoutMs + 20)
    const late = far.arrivals.length > before ? ['something was sent when all was settled'] : []
    return [...late, ...asks.flatMap((ask, i) => ofRequest(world, schedule, ask, heard[i])), ...await ofAll(world, asks.length, someLeft)]
  } finally {
    await app.close()
    await far.close()
  }
}

/**
 * A caller that leaves before its request has come is none. Silence in a reply that nobody reads any more is found out within a second or
 * two.
 */
async function allSettled ({ far, settled }: World, asks: readonly Ask[]): Promise<void> {
  const isSettled = ({ tag }: Ask): boolean => settled.some(({ body: { bytes: body } }) => body?.toString().includes(`${tag}.`))
  for (let waited = 0; waited < 1_000; waited += 1) {
    if (asks.every((ask) => isSettled(ask) || (waited > 20 && far.of(ask.tag).length === 0))) return
    await wait(10)
  }
}
