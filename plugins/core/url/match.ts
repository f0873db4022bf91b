/** The endpoint table, indexed by the segments that follow the version prefix. */
import { endpoints, familyOf, modelLists } from '../../protocols/index.js'
import type { Caller, Endpoint, Family } from '../../protocols/index.js'

/** Endpoints of a tail, one for each method, and the model if it is in the path. */
export interface TailMatch {
  readonly endpoints: readonly Endpoint[]
  readonly model: string | null
  /** The tail as it is sent upstream. */
  readonly tail: string
}

const plain = new Map<string, Endpoint[]>()
const actions = new Map<string, Endpoint[]>()
const patterns: Endpoint[] = []

for (const endpoint of endpoints) {
  const tail = endpoint.tail.join('/')
  if (endpoint.action !== null) add(actions, `${endpoint.tail[0]}:${endpoint.action}`, endpoint)
  else if (tail.includes(':')) patterns.push(endpoint)
  else add(plain, tail, endpoint)
}

function add (map: Map<string, Endpoint[]>, key: string, endpoint: Endpoint): void {
  map.set(key, [...map.get(key) ?? [], endpoint])
}

const actionRoots = new Set([...actions.keys()].map((key) => key.replace(/:.*/, '').toLowerCase()))

/** The words that may follow the last colon of a path. */
export const knownActions: readonly string[] = [...new Set(endpoints.flatMap(({ action }) => action ?? []))]

const actionLike = new RegExp(`(?::|%3A)(${knownActions.join('|')})(?![a-z])`, 'i')

const actionFamilies = new Map(endpoints.flatMap(({ action, family }) => action === null ? [] : [[action.toLowerCase(), family] as const]))

/** Tails without parameters, for the fast path. */
export const plainTails: ReadonlyMap<string, readonly Endpoint[]> = plain

const roots = new Set([...endpoints.map(({ tail }) => String(tail[0]).toLowerCase()), 'models'])

/** True for the first segment of an endpoint's tail, in any case. */
export function isRoot (segment: string | undefined): boolean {
  return segment !== undefined && roots.has(segment.toLowerCase())
}

/** True for a tail that identifies its endpoint alone: if another tail precedes it, that one was pasted as base address. */
export function isWhole (segments: readonly string[]): boolean {
  const tail = segments.join('/')
  return plain.has(tail) || endsInAction(String(segments[0]), tail)
}

function endsInAction (root: string, text: string): boolean {
  return actions.has(`${root}:${lastWord(text)}`)
}

/** What follows a colon at its end. */
export function lastWord (text: string): string | undefined {
  return /(?::|%3A)([A-Za-z]+)$/i.exec(text)?.[1]
}

/**
 * The family whose format answers a path that is no endpoint: that of the action at its end, whatever precedes it, such as a project in
 * paths of Vertex; otherwise the caller's.
 */
export function familyAsked (segments: readonly string[], caller: Caller): Family {
  return actionFamilies.get(String(lastWord(String(segments.at(-1)))).toLowerCase()) ?? familyOf(caller)
}

/**
 * The family of an endpoint whose action follows a colon anywhere in a tail, in any case: more than `matchTail` serves. A lenient upstream
 * may find a model there, so such a path is never left to a mount.
 */
export function familyLike (segments: readonly string[]): Family | null {
  if (!actionRoots.has(String(segments[0]).toLowerCase())) return null
  const [, action = ''] = actionLike.exec(segments.join('/')) ?? []
  return actionFamilies.get(action.toLowerCase()) ?? null
}

/** Null if the tail belongs to no endpoint. */
export function matchTail (segments: readonly string[], caller: Caller): TailMatch | null {
  const tail = segments.join('/')
  const matching = [...plain.get(tail) ?? [], ...patterns.filter((endpoint) => fits(endpoint, segments))]
  if (matching.length > 0) return { endpoints: matching, model: null, tail }
  return matchAction(segments[0] ?? '', tail) ?? matchModelList(segments, tail, caller)
}

function fits (endpoint: Endpoint, segments: readonly string[]): boolean {
  if (endpoint.tail.length !== segments.length) return false
  return segments.every((segment, i) => {
    return endpoint.tail[i] === ':id' ? /^[A-Za-z0-9_~:-][A-Za-z0-9._~:-]*$/.test(segment) : endpoint.tail[i] === segment
  })
}

/** `models/<model>:<action>`: the action follows the last colon, which a client may have encoded. */
function matchAction (root: string, tail: string): TailMatch | null {
  const cut = /^(.*)(?::|%3A)([A-Za-z]+)$/is.exec(tail)
  if (cut === null) return null
  const [, head = '', action = ''] = cut
  const known = actions.get(`${root}:${action}`)
  const model = modelName(head.slice(root.length + 1))
  if (known === undefined || model === null || model.split('/').some((part) => endsInAction(root, part))) return null
  // The same name below another root is another model: it must not be taken for an allowed one.
  return { endpoints: known, model: root === 'models' ? model : `${root}/${model}`, tail: `${head}:${action}` }
}

function matchModelList (segments: readonly string[], tail: string, caller: Caller): TailMatch | null {
  if (segments[0] !== 'models') return null
  const lists = modelLists[familyOf(caller).name]
  if (segments.length === 1) return { endpoints: lists.list, model: null, tail }
  const model = modelName(tail.slice('models/'.length))
  return model === null ? null : { endpoints: lists.retrieve, model, tail }
}

// `%2F` inside a model, `%3A` and `%40` because clients encode `:` and `@` of a model id, `%2B` for `+`. Nothing else: `%2e`, `%5c`, `%00`,
// `%25` could each mean one thing here and another to the next reader.
const triplets: ReadonlyMap<string, string> = new Map([['%2F', '/'], ['%3A', ':'], ['%40', '@'], ['%2B', '+']])

/**
 * The model that a part of the path names, decoded exactly once; null if it contains anything that is not plainly a model id. A model may
 * contain `/`, `:` and `@`, but no empty and no dot segments.
 */
function modelName (raw: string): string | null {
  if (!/^(?:[A-Za-z0-9._~:/@+=,()!*-]|%2F|%3A|%40|%2B)+$/i.test(raw)) return null
  const name = raw.replace(/%../g, (triplet) => String(triplets.get(triplet.toUpperCase())))
  return /(?:^|\/)\.{0,2}(?:\/|$)/.test(name) ? null : name
}
