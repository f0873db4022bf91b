import type { IncomingHttpHeaders } from 'node:http'
import type { UsageRequest, UsageRules } from '../protocols/usage-rules.js'
import { duplicateKey } from '../core/body/duplicate-key.js'
import { largeBytes } from '../core/body/collect-body.js'
import { folded } from '../core/body/folded.js'
import type { ModelCall } from '../core/call/model-call.js'
import { openObject } from '../core/body/bytes.js'
import { parseJson } from '../core/body/parse-json.js'
import { fieldIn, type Edit, type Field } from './body-field.js'
import { insertSlowly, searchSlowly } from './large-body.js'
import { isObject } from '../core/body/json-object.js'

/**
 * Asks for usage on behalf of a caller who streams and did not ask. True if the request was changed: the reply then has an
 * event that the caller must not see. It can only be removed from an uncompressed reply, so none is accepted compressed. A promise
 * for a large body.
 */
export function askFor (llm: ModelCall, headers: IncomingHttpHeaders, rules: UsageRules): boolean | Promise<boolean> {
  const { bytes } = llm.body
  if (rules.request === null || bytes === null) return false
  if (bytes.length > largeBytes) return askInLarge(llm, bytes, headers, rules.request)
  const json = llm.body.json === undefined ? parseJson(bytes.toString()) : llm.body.json
  const edit = isObject(json) && json['stream'] === true ? editOf(bytes, json[rules.request.field], rules.request) : null
  if (edit === null) return false
  const outgoing = Buffer.concat([bytes.subarray(0, edit.start), Buffer.from(edit.text), bytes.subarray(edit.end)])
  return asked(llm, headers, outgoing, edit)
}

function asked (llm: ModelCall, headers: IncomingHttpHeaders, outgoing: Buffer, { start, end, text }: Edit): true {
  const { body } = llm
  const moved = Buffer.byteLength(text) - (end - start)
  // A host's not-found handler may have the hooks run a second time for the same bytes.
  if (body.outgoing === null && body.modelPlaces !== null) {
    body.modelPlaces = body.modelPlaces.map(([from, to]) => from < end ? [from, to] : [from + moved, to + moved])
  }
  body.outgoing = outgoing
  headers['accept-encoding'] = 'identity'
  return true
}

/**
 * What puts the flag that asks for usage into the raw bytes of a streamed request whose caller did not ask; every other byte
 * stays as it was. `options`: the value of the field. Null if the caller asked, or if the field is no object: the upstream
 * answers that.
 */
function editOf (body: Buffer, options: unknown, request: UsageRequest): Edit | null {
  if (isObject(options) && isPlainlyAsked(body, request)) return null
  return editFor(body, options === undefined ? noField : fieldIn(body, request.field), options, request)
}

/** The same for a body that would block the event loop. If it was checked, `json` has these fields, and little more. */
async function askInLarge (llm: ModelCall, body: Buffer, headers: IncomingHttpHeaders, request: UsageRequest): Promise<boolean> {
  const { json } = llm.body
  if (!await asksForStream(body, json)) return false
  const parsed = isObject(json) ? json[request.field] : null
  const field = parsed === undefined ? noField : await searchSlowly(body, request.field)
  const edit = field === null ? null : editFor(body, field, field.value, request)
  return edit !== null && asked(llm, headers, await insertSlowly(body, edit), edit)
}

async function asksForStream (body: Buffer, json: unknown): Promise<boolean> {
  if (json !== undefined) return isObject(json) && json['stream'] === true
  const field = await searchSlowly(body, 'stream')
  return field?.value === true
}

const noField: Field = { value: undefined, start: 0, end: 0 }

function editFor (body: Buffer, { start, end }: Field, options: unknown, { field, flag }: UsageRequest): Edit | null {
  const asking = `"${flag}":true`
  const first = body.indexOf(openObject) + 1
  if (options === undefined) return { start: first, end: first, text: `"${field}":{${asking}},` }
  if (options === null) return { start, end, text: `{${asking}}` }
  if (!isObject(options)) return null
  const members = Object.entries(options)
  const plain = members.filter(([name]) => name === flag || folded(name) !== flag)
  // With two spellings the upstream chooses which one counts, so neither is trusted.
  if (plain.length < members.length || duplicateKey(body.subarray(start, end)) !== null) {
    return { start, end, text: JSON.stringify({ ...Object.fromEntries(plain), [flag]: true }) }
  }
  if (options[flag] === true) return null
  if (flag in options) {
    const inner = fieldIn(body.subarray(start, end), flag)
    return { start: start + inner.start, end: start + inner.end, text: 'true' }
  }
  return { start: start + 1, end: start + 1, text: Object.keys(options).length > 0 ? `${asking},` : asking }
}

/** The usual words, exactly once, so that no more need be checked. An escape could spell the field in another way. */
function isPlainlyAsked (body: Buffer, { field, flag }: UsageRequest): boolean {
  return body.includes(`"${field}":{"${flag}":true}`) && body.indexOf(field) === body.lastIndexOf(field) && !body.includes('\\u00')
}
