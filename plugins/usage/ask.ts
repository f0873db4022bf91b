import type { IncomingHttpHeaders } from 'node:http'
import type { UsageRequest, UsageRules } from '../protocols/usage-rules.js'
import type { ModelCall } from '../core/model-call.js'
import { parseJson } from './captured-value.js'
import { JsonScanner } from './json-scanner.js'
import { isObject, type JsonObject } from './usage-object.js'
import { compileWants } from './wants.js'

/**
 * Asks for usage on behalf of a caller who streams and did not. True where the request was changed: the reply then has an
 * event that its caller must not see. To take it out the bytes must be plain, so no compression is asked for.
 */
export function askFor (llm: ModelCall, headers: IncomingHttpHeaders, rules: UsageRules): boolean {
  if (rules.request === null || llm.body === null) return false
  const json = llm.json === undefined ? parseJson(llm.body.toString()) : llm.json
  const outgoing = isObject(json) && json['stream'] === true ? askForUsage(llm.body, json, rules.request) : null
  if (outgoing === null) return false
  llm.outgoing = outgoing
  headers['accept-encoding'] = 'identity'
  return true
}

/**
 * Puts the switch that asks for usage into the raw bytes of a streamed request whose caller did not ask; every other byte
 * stays as it was. `json` is the same body, parsed. Null where the caller asked, or where the field is no object and its
 * answer is the upstream's to give.
 */
export function askForUsage (body: Buffer, json: JsonObject, request: UsageRequest): Buffer | null {
  const { field, flag } = request
  const options = json[field]
  const asked = `"${flag}":true`
  if (options === undefined) return splice(body, [body.indexOf('{') + 1, body.indexOf('{') + 1], `"${field}":{${asked}},`)
  if (options === null) return splice(body, spanOf(body, field), `{${asked}}`)
  if (!isObject(options) || isPlainlyAsked(body, field, asked)) return null
  // Which of two counts is the upstream's choice: neither is taken for the caller's word.
  if (holdsTwice(body.toString('utf8', ...spanOf(body, field)), options)) return splice(body, spanOf(body, field), JSON.stringify({ ...options, [flag]: true }))
  if (options[flag] === true) return null
  if (flag in options) return splice(body, spanOf(body, `${field}.${flag}`), 'true')
  const [start] = spanOf(body, field)
  return splice(body, [start + 1, start + 1], Object.keys(options).length > 0 ? `${asked},` : asked)
}

/** The usual words, there once: no more need be looked at. An escape could spell the field anew. */
function isPlainlyAsked (body: Buffer, field: string, asked: string): boolean {
  return body.includes(`"${field}":{${asked}}`) && body.indexOf(field) === body.lastIndexOf(field) && !body.includes('\\u00')
}

/** True where the text of an object has more members than the object. */
function holdsTwice (text: string, object: JsonObject): boolean {
  let depth = 0
  let members = 0
  for (const sign of text.replace(/"(?:[^"\\]|\\.)*"/gs, '').replace(/[^{}[\]:]/g, '')) {
    if (sign === ':' && depth === 1) members += 1
    else if (sign === '{' || sign === '[') depth += 1
    else if (sign === '}' || sign === ']') depth -= 1
  }
  return members > Object.keys(object).length
}

/** Where the value at a path stands in the bytes of a document that has it. */
function spanOf (body: Buffer, path: string): [start: number, end: number] {
  const scanner = new JsonScanner(compileWants([path]))
  scanner.push(body, 0, body.length)
  return [scanner.captured.start, scanner.captured.end]
}

function splice (body: Buffer, [start, end]: [number, number], text: string): Buffer {
  return Buffer.concat([body.subarray(0, start), Buffer.from(text), body.subarray(end)])
}
