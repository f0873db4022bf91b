import { checkOptions } from '../core/config/options.js'
import { endpointIds, type EndpointId, type SchemaName } from '../protocols/index.js'
import type { BodyRules } from './check-body.js'
import type { RulesData } from './questions.js'
import { readSchemas, readSources, type SchemaSource } from './schemas.js'

export interface ValidationOptions {
  /**
   * Maximum size of a request body in bytes.
   * @defaultValue 33,554,432 (32 MiB), the longest that current services take
   */
  maxBodyBytes?: number
  /**
   * The same for single endpoints, by endpoint id: `{ 'images.edits': 67_108_864 }`.
   * @defaultValue `{}`
   */
  maxBodyBytesByEndpoint?: Partial<Record<EndpointId, number>>
  /**
   * Replaces schemas: by schema name (`chat-completions`) or endpoint id (`chat_completions`), with a JSON Schema 2020-12 or the path of
   * its file.
   * @defaultValue those of the package
   */
  schemas?: Partial<Record<SchemaName | EndpointId, SchemaSource>>
  /**
   * Maximum nesting of a JSON body.
   * @defaultValue 256
   */
  maxDepth?: number
  /**
   * Maximum number of values (members and elements) in a JSON body; an empty object or list counts twice.
   * @defaultValue 1,000,000
   */
  maxValues?: number
}

/** What requests are checked against. */
export interface Rules {
  readonly bodies: BodyRules
  /** The rules for checks on the event loop. */
  readonly here: BodyRules
  /** The rules for a thread, which compiles its own schemas. */
  readonly data: RulesData
  readonly maxBodyBytesOf: (endpointId: string) => number
}

const defaultMaxBodyBytes = 32 * 1024 * 1024

/**
 * The most deeply nested real bodies are tool definitions: each level of a nested parameter schema takes two or three levels of JSON, so
 * that 256 leave room for 80 levels of parameters, which no service accepts. The parser and all later readers can process 256 levels.
 */
const defaultMaxDepth = 256

/**
 * A body of a million values takes two seconds and 100 MB to parse if each has another key. The largest lists of token ids have a third of
 * that.
 */
const defaultMaxValues = 1_000_000

/** A small body with more values than this would block the event loop for 20 ms. */
const fewValues = 8_192

/** Throws `LLM_GATEWAY_OPTION` naming the wrong option. */
export function readOptions (options: ValidationOptions): Rules {
  checkOptions('validation', options, {
    'a whole number of at least 1': ['maxBodyBytes', 'maxDepth', 'maxValues'],
    'an object': ['maxBodyBytesByEndpoint', 'schemas'],
  })
  const { maxBodyBytes = defaultMaxBodyBytes, maxBodyBytesByEndpoint = {}, schemas = {} } = options
  const { maxDepth = defaultMaxDepth, maxValues = defaultMaxValues } = options
  checkOptions('validation.maxBodyBytesByEndpoint', maxBodyBytesByEndpoint, byEndpoint)
  const caps = new Map(Object.entries(maxBodyBytesByEndpoint))
  const bodies = { checks: readSchemas(schemas), maxDepth, maxValues }
  return {
    bodies,
    here: { ...bodies, maxValues: Math.min(maxValues, fewValues) },
    data: { schemas: JSON.stringify(readSources(schemas)), maxDepth, maxValues },
    maxBodyBytesOf: (id) => caps.get(id) ?? maxBodyBytes,
  }
}

const byEndpoint = { 'a whole number of at least 1': endpointIds }
