import { StoreDownError } from '../../core/balances/store-down.js'
import { drainTimer } from '../drain-timer.js'
import { refusalOf, type RedisLink } from './link.js'
import type { StepName } from './steps.js'

/** One step of the script. */
export interface Step {
  readonly name: StepName
  /** The key whose window it touches beside the group's; null for none. */
  readonly key: string | null
  readonly values: ReadonlyArray<string | number>
  /** Arguments behind the place of that window. */
  readonly more?: ReadonlyArray<string | number>
}

/** Throws if the answer cannot be read. */
type Read<T> = (answer: readonly unknown[]) => T

interface RedisTurns {
  /** Sends with all others of this turn of the event loop. Resolves with the result of `read` on the answer. */
  readonly soon: <T>(group: string, step: Step, read: Read<T>) => Promise<T>
  /** Sends with the next turn that somebody waits for, or after a few milliseconds. */
  readonly later: <T>(group: string, step: Step, read: Read<T>) => Promise<T>
}

export interface RedisTurnsOptions {
  readonly prefix: string
  readonly holdTtlMs: number
  /** A clock in place of the server's, for tests. */
  readonly now?: (() => number) | undefined
}

interface Waiting {
  readonly step: Step
  readonly answer: (answer: unknown) => void
  readonly reject: (error: unknown) => void
}

/** Maximum number of steps in one command: the server does nothing else meanwhile. */
const maxSteps = 128
/** Holds, deadlines, accounts, buckets, their ends, and the group's window. */
const sharedKeys = ['holds', 'deadlines', 'accounts', 'buckets', 'ends', 'minute']

/** Collects the steps of each group, and sends them as one command. */
export function redisTurns (link: RedisLink, options: RedisTurnsOptions): RedisTurns {
  const groups = new Map<string, Waiting[]>()
  const timer = drainTimer(() => {
    const turn = [...groups]
    groups.clear()
    for (const [group, waiting] of turn) while (waiting.length > 0) send(link, options, group, waiting.splice(0, maxSteps))
  })
  // The promise itself is returned, here and below: each further one would cost a request as much as its step.
  const wait = <T>(group: string, step: Step, read: Read<T>): Promise<T> => new Promise<T>((resolve, reject) => {
    const answer = (reply: unknown): void => {
      if (reply instanceof Error) return reject(refusalOf(reply))
      try {
        resolve(read(Array.isArray(reply) ? reply : [reply]))
      } catch (error) {
        reject(error)
      }
    }
    const waiting = groups.get(group)
    if (waiting === undefined) groups.set(group, [{ step, answer, reject }])
    else waiting.push({ step, answer, reject })
  })
  return {
    soon: (group, step, read) => {
      timer.soon()
      return wait(group, step, read)
    },
    later: (group, step, read) => {
      timer.later()
      return wait(group, step, read)
    },
  }
}

function send (link: RedisLink, { prefix, holdTtlMs, now }: RedisTurnsOptions, group: string, waiting: readonly Waiting[]): void {
  // One hash tag for everything that a step touches: one slot of a cluster. Encoded, because a brace would end the tag.
  const tag = `${prefix}:{${encodeURIComponent(group)}}`
  const keys = sharedKeys.map((name) => `${tag}:${name}`)
  const values: Array<string | number> = [now === undefined ? '' : now(), holdTtlMs]
  for (const { step: { name, key, values: first, more = [] } } of waiting) {
    const place = key === null ? [] : [placeOf(keys, `${tag}:minute:${key}`)]
    values.push(name, first.length + place.length + more.length, ...first, ...place, ...more)
  }
  link.script('takeSteps', keys, values).then((answers) => {
    const isWhole = Array.isArray(answers) && answers.length === waiting.length
    waiting.forEach(({ answer, reject }, at) => isWhole
      ? answer(answers[at])
      : reject(new StoreDownError('gave an answer that cannot be read')))
  }, (error: unknown) => { for (const { reject } of waiting) reject(error) })
}

/** Counted from one, as the script does. */
function placeOf (keys: string[], key: string): number {
  const known = keys.indexOf(key)
  return known === -1 ? keys.push(key) : known + 1
}
