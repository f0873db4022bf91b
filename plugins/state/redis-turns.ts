import { StoreDownError } from '../core/balances/store-down.js'
import type { RedisLink } from './redis-link.js'
import type { StepName } from './redis-steps.js'

/** One step of the script. */
export interface Step {
  readonly name: StepName
  /** Whose window it touches beside the group's; null for none. */
  readonly key: string | null
  readonly values: ReadonlyArray<string | number>
  /** Behind the place of that window. */
  readonly more?: ReadonlyArray<string | number>
}

export interface RedisTurns {
  /** With all others of this turn of the event loop. */
  readonly soon: (group: string, step: Step) => Promise<unknown>
  /** With the next turn that somebody waits for, or after a few milliseconds. */
  readonly later: (group: string, step: Step) => Promise<unknown>
}

export interface RedisTurnsOptions {
  readonly prefix: string
  readonly holdTtlMs: number
  readonly now?: (() => number) | undefined
}

interface Waiting {
  readonly step: Step
  readonly resolve: (answer: unknown) => void
  readonly reject: (error: unknown) => void
}

const laterMs = 5
/** Steps of one command: the server does nothing else meanwhile. */
const maxSteps = 128
/** Holds, deadlines, accounts, buckets, their ends, and the group's window. */
const sharedKeys = ['holds', 'deadlines', 'accounts', 'buckets', 'ends', 'minute']

/** Gathers the steps of each group, and sends them as one command. */
export function redisTurns (link: RedisLink, options: RedisTurnsOptions): RedisTurns {
  const groups = new Map<string, Waiting[]>()
  let isDue = false
  let timer: NodeJS.Timeout | undefined
  const drain = (): void => {
    timer = undefined
    isDue = false
    const turn = [...groups]
    groups.clear()
    for (const [group, waiting] of turn) while (waiting.length > 0) send(link, options, group, waiting.splice(0, maxSteps))
  }
  const wait = async (group: string, step: Step): Promise<unknown> => await new Promise((resolve, reject) => {
    const waiting = groups.get(group)
    if (waiting === undefined) groups.set(group, [{ step, resolve, reject }])
    else waiting.push({ step, resolve, reject })
  })
  return {
    soon: async (group, step) => {
      if (!isDue) setImmediate(drain)
      isDue = true
      clearTimeout(timer)
      return await wait(group, step)
    },
    later: async (group, step) => {
      if (!isDue) timer ??= setTimeout(drain, laterMs)
      return await wait(group, step)
    },
  }
}

function send (link: RedisLink, { prefix, holdTtlMs, now }: RedisTurnsOptions, group: string, waiting: readonly Waiting[]): void {
  // One hash tag for all that a step touches: one slot of a cluster. Encoded, because a brace would end the tag.
  const tag = `${prefix}:{${encodeURIComponent(group)}}`
  const keys = sharedKeys.map((name) => `${tag}:${name}`)
  const values: Array<string | number> = [now === undefined ? '' : now(), holdTtlMs]
  for (const { step: { name, key, values: first, more = [] } } of waiting) {
    const place = key === null ? [] : [placeOf(keys, `${tag}:minute:${key}`)]
    values.push(name, first.length + place.length + more.length, ...first, ...place, ...more)
  }
  link.script('takeSteps', keys, values).then((answers) => {
    const list = Array.isArray(answers) ? answers : []
    waiting.forEach(({ resolve, reject }, at) => list.length === waiting.length
      ? resolve(list[at])
      : reject(new StoreDownError('gave an answer that cannot be read')))
  }, (error: unknown) => { for (const { reject } of waiting) reject(error) })
}

/** Counted from one, as the script does. */
function placeOf (keys: string[], key: string): number {
  const known = keys.indexOf(key)
  return known === -1 ? keys.push(key) : known + 1
}
