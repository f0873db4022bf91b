/** Sends bodies to a thread and back: their memory is transferred, and results are returned as little data. */
import type { MessagePort } from 'node:worker_threads'
import { isObject } from '../core/body/json-object.js'
import { textsAtAny } from '../core/body/json-text.js'
import { paidTools } from '../core/money/paid-tools.js'
import { conversationFields } from '../protocols/conversation.js'
import { endpoints, modelPaths, type Endpoint } from '../protocols/index.js'
import { checkBody, type BodyRules, type Findings } from './check-body.js'
import type { MediaType } from './media-type.js'
import { only, outline } from './outline.js'
import { BodyRefusal, type BodyRefusalFacts } from './body-refusal.js'
import type { Bounds } from './scan.js'
import { readSchemas } from './schemas.js'
import { estimatedBy } from './spelling.js'

export interface Question {
  readonly endpoint: string
  readonly type: MediaType
  readonly bytes: Uint8Array<ArrayBuffer>
  /** Looks for the places of the model's name, for upstreams that have another one. */
  readonly wantsPlaces: boolean
}

export interface Answer {
  /** The body as received. */
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly verdict: BodyRefusalFacts | Findings
}

const mostPlaces = 10_000
/** No provider takes more of a kind. */
const mostTools = 1_000

/** Rules as sent to a thread. */
export interface RulesData extends Bounds {
  /** The replaced schemas, by name, as JSON. */
  readonly schemas: string
}

export function rulesFrom ({ schemas, maxDepth, maxValues }: RulesData): BodyRules {
  return { checks: readSchemas(JSON.parse(schemas)), maxDepth, maxValues }
}

export function answerQuestion ({ endpoint: id, type, bytes, wantsPlaces }: Question, rules: BodyRules): Answer {
  const endpoint = endpoints.find((known) => known.id === id)
  if (endpoint === undefined) throw new Error(`there is no endpoint ${id}`)
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const verdict = checkBody(endpoint, type, body, rules)
  if (verdict instanceof BodyRefusal) return { bytes, verdict: verdict.facts }
  const places = wantsPlaces && type.kind === 'json' ? textsAtAny(body, modelPaths(endpoint)) : null
  // A list of very many would take the loop longer to receive than to make again.
  const found = places !== null && places.length <= mostPlaces ? { modelPlaces: places } : {}
  return { bytes, verdict: { ...verdict, ...found, json: outlineFor(endpoint, verdict.json) } }
}

/** Answers each message on a thread's port; outside of a thread there is none. */
export function serveQuestions (port: MessagePort | null, data: RulesData): void {
  if (port === null) return
  const rules = rulesFrom(data)
  port.on('message', (question: Question) => {
    const answer = answerQuestion(question, rules)
    port.postMessage(answer, [answer.bytes.buffer])
  })
}

/** Paid uses are estimated from the tools of a request, however many other values precede them or stand in them. */
function outlineFor (endpoint: Endpoint, json: unknown): unknown {
  const kept = outline(json, fieldsReadOf(endpoint))
  const tools = endpoint.output?.tools?.flatMap((tool) => {
    const fields = [...['type', ...tool.names, tool.most ?? []].flat().map((name) => [name]), ...tool.sizes ?? []]
    return paidTools(json, tool, endpoint.output?.toolsWithin).slice(0, mostTools).map((entry) => only(entry, fields))
  }) ?? []
  return tools.length === 0 || !isObject(kept) ? kept : { ...kept, tools }
}

/** Fields that other plugins decide by: they must be kept however many other fields there are. */
function fieldsReadOf (endpoint: Endpoint): ReadonlyArray<readonly string[]> {
  return [
    ...estimatedBy(endpoint),
    ...Object.values({ ...endpoint.text?.settings }).flat(),
    ...Object.values({ ...endpoint.heldConversation }),
    ...conversationFields.flatMap((field) => field.in === 'body' ? [field.path] : []),
  ]
}
