import type { FarSide, Seen } from './far-side.js'
import type { Need } from './needs.js'
import type { FamilyName, Options } from './options.js'
import type { Reply } from './wire.js'

export interface Check {
  /** Never changes: results of two gateways, or of two years, are compared by it. */
  readonly number: number
  readonly title: string
  readonly needs: readonly Need[]
  /** Resolves with what was seen, rejects with what was expected. */
  readonly run: (subject: Subject) => Promise<string>
}

/** The gateway under test, and everything that a check may use. */
export interface Subject {
  readonly options: Options
  readonly far: FarSide
  readonly ask: (kind: Kind, change?: Change) => Promise<Reply>
}

export const kinds = ['chat', 'responses', 'embeddings', 'images', 'messages', 'gemini'] as const

export type Kind = typeof kinds[number]

/** How a request differs from the plain one of its kind. */
export interface Change {
  readonly method?: string
  readonly path?: string
  /** Added to the plain body. */
  readonly fields?: Readonly<Record<string, unknown>>
  /** Replaces the plain body. */
  readonly body?: string | Buffer
  /** Added or replaced; undefined removes. */
  readonly headers?: Readonly<Record<string, string | undefined>>
  readonly onBytes?: (sofar: Buffer) => unknown
  readonly signal?: AbortSignal
}

class CheckFailed extends Error {}

/** Fails the check with what was seen, unless `holds`. */
export function expect (holds: boolean, seen: string): asserts holds {
  if (!holds) throw new CheckFailed(seen)
}

export function expectStatus (reply: Reply, status: number, about = ''): void {
  expect(reply.status === status, `${about}${about === '' ? '' : ': '}status ${reply.status} instead of ${status}: ${excerpt(reply.text)}`)
}

/** Checked only if the kit is the far side; otherwise only the reply is checked. */
export function expectFar (subject: Subject, path: RegExp): string {
  const { far } = subject
  if (!far.listening) return ''
  const { urls } = far
  expect(path.test(urls), `the far side saw ${urls} instead of ${String(path)}`)
  return `, far side saw ${urls}`
}

/** The request that arrives at the far side; fails at once if the gateway answers by itself. */
export async function arrivalOr (arrival: Promise<Seen>, reply: Promise<Reply | null>): Promise<Seen> {
  const answered = reply.then((early): never => { throw new CheckFailed(`status ${String(early?.status)}, and nothing was forwarded`) })
  return await Promise.race([arrival, answered])
}

const shapes: Readonly<Record<FamilyName, (error: Fields, status: number, type: unknown) => boolean>> = {
  openai: (error) => isText(error.message) && isText(error.type) && 'param' in error && 'code' in error,
  anthropic: (error, _, type) => type === 'error' && isText(error.message) && isText(error.type),
  gemini: (error, status) => error.code === status && isText(error.message) && isText(error.status),
}

/** Checks that the reply is an error of the gateway in this family's format: status, media type and envelope. Returns its `error`. */
export function expectEnvelope (reply: Reply, family: FamilyName, status: number, about = ''): Fields {
  expectStatus(reply, status, about)
  const type = String(reply.headers['content-type'])
  expect(/^application\/json/.test(type), `${about} content type ${type}`)
  const body = fieldsOf(reply.json)
  const error = fieldsOf(body.error)
  expect(shapes[family](error, status, body.type), `${about} not the envelope of this family: ${excerpt(reply.text)}`)
  return error
}

export type Fields = Readonly<Record<string, unknown>>

/** The members of a JSON object; none for anything else. */
export function fieldsOf (value: unknown): Fields {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

export function isText (value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

export function excerpt (value: string): string {
  const line = value.replace(/\s+/g, ' ')
  return line.length > 120 ? `${line.slice(0, 120)}…` : line
}
