import { setTimeout as pause } from 'node:timers/promises'
import { status } from './run.js'

/** Four callers, each with the secret that holds at the moment, until they are told to end. */
export function callers (origin: string, secret: () => string) {
  const refused: number[] = []
  const state = { ended: false, answered: 0 }
  const loop = async (): Promise<void> => {
    while (!state.ended) {
      const got = await status(origin, secret())
      if (got === 200) state.answered += 1
      else refused.push(got)
    }
  }
  const loops = Array.from({ length: 4 }, loop)
  return {
    refused,
    answered: () => state.answered,
    /** Until each has been answered some more times. */
    async more () {
      const enough = state.answered + 20
      while (state.answered < enough && refused.length === 0) await pause(5)
    },
    async end () {
      state.ended = true
      await Promise.all(loops)
    },
  }
}
