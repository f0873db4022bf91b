import { isLikeAscii, readParameters } from './parameters.js'
import { folded } from '../core/body/folded.js'
import type { Span } from '../core/body/json-text.js'
import { refused, type BodyRefusal } from './body-refusal.js'

/** A part's header lines and the value of a wanted field are short; files are never read. */
const headersMaxBytes = 8 * 1024
const valueMaxBytes = 1024
/** Names found in a part's header lines beside its own: thousands of them would be looked at one by one. */
const othersMax = 8

/**
 * Finds the values of the wanted fields of a multipart/form-data body (RFC 7578), and nothing else: one native search from delimiter to
 * delimiter. Refuses everything that two readers could read in two ways: a delimiter that is not between line ends, a part without exactly
 * one plain name, a wanted field that occurs twice, is long, coded or a file, a body that does not end.
 */
export function readForm (
  bytes: Buffer, boundary: string, wanted: readonly string[], maxParts: number
): ReadonlyMap<string, Span> | BodyRefusal {
  if (bytes.length === 0) return refused('empty', 'missing_body')
  const fields = new Map<string, Span>()
  let start = 0
  let parts = 0
  // Sanic looks for the boundary without its dashes.
  let at = bytes.indexOf(boundary) - 2
  while (at >= 0) {
    if (bytes.readUInt16BE(at) !== 0x2D2D) return malformed('its boundary stands in it without dashes')
    if (parts++ > maxParts) return refused('values', 'invalid_body', { reason: `The form has more than ${maxParts} parts.` })
    const problem = start === 0 ? preamble(bytes, at) : readPart(bytes.subarray(start, at), start, wanted, fields)
    if (problem !== null) return malformed(problem)
    start = at + 2 + boundary.length
    if (/^--(?:\r\n){0,2}$/.test(bytes.toString('latin1', start, start + 7))) return fields
    at = bytes.indexOf(boundary, start) - 2
  }
  return malformed('its last boundary is missing')
}

/** RFC 2046 allows text before the first part. Clients send none, but some begin with a line end, as each further delimiter does. */
function preamble (bytes: Buffer, length: number): string | null {
  return length === 0 || (length === 2 && bytes.readUInt16BE() === 0x0D0A) ? null : 'it does not start with its boundary'
}

/**
 * A disposition as clients write it, a file's name behind its own: some take a quote or a backslash for a letter. No server finds a name in
 * such a text if it has no `;`, and no `=` beside them.
 */
const usual =
  /^(content-disposition:[ \t]*form-data;[ \t]*name="[^"\\]*";[ \t]*filename=)"(?:[\t -:<>-~\x80-\xff]*"$|[\t !#-:<-[\]-~\x80-\xff]*")/im

/** Reads one part, from the line end after its delimiter to the one before the next; `at`: its position. Returns what is wrong with it. */
function readPart (part: Buffer, at: number, wanted: readonly string[], fields: Map<string, Span>): string | null {
  const text = part.toString('latin1', 0, headersMaxBytes)
  const headersEnd = text.indexOf('\r\n\r\n')
  const valueStart = headersEnd + 4
  const valueEnd = part.length - 2
  if (!text.startsWith('\r\n') || headersEnd < 0 || valueEnd < valueStart || part.toString('latin1', valueEnd) !== '\r\n') {
    return 'its parts are not separated by its boundary'
  }
  const value = part.subarray(valueStart, valueEnd)
  const head = text.slice(2, headersEnd).replace(usual, '$1""')
  const lines = head.split('\r\n')
  const disposition = readDisposition(lines)
  const name = disposition?.get('name')
  // Servers in Java decode `=?utf-8?Q?model?=` (RFC 2047), Netty takes `model=` for `model`, and Rack looks behind `;`, or elsewhere.
  if (disposition === null || name === undefined || /^$|[\\=;:,]/.test(name)) return 'a part has no plain name'
  if (lines.some((line) => endsElsewhere(line, value.length))) return 'a part has another length or parts of its own'
  const others = namesIn(head.replace(`name="${name}"`, ''))
  if (others.length > othersMax) return 'a part has no plain name'
  const meant = [name, ...others].map((found) => fieldMeant(found, wanted)).find((field) => field !== undefined && field !== name)
  if (meant !== undefined) return `a field could be read as ${meant}, and is spelled otherwise`
  if (/_charset_/i.test(name) && !isLikeAscii(value.toString('latin1'))) return 'its fields are in another charset'
  if (!wanted.includes(name)) return null
  if (fields.has(name)) return `the field ${name} stands in it twice`
  if (hasParameter(disposition, 'filename') || lines.some(isCoded) || !isPlain(value)) {
    return `the field ${name} is not a short plain text`
  }
  fields.set(name, [at + valueStart, at + valueEnd])
  return null
}

/**
 * Some servers leave a byte order mark out. Rust's multer and ASP.NET read UTF-16 behind one, and Jetty where `_charset_` says so: it has
 * bytes that no plain text has.
 */
function isPlain (value: Buffer): boolean {
  return value.length <= valueMaxBytes && !/[\0\xfe\xff]|^\xef\xbb\xbf/.test(value.toString('latin1'))
}

/** Some servers decode a value: Go's all that is quoted-printable, ASP.NET's by the charset of its part. */
function isCoded (line: string): boolean {
  const [, encoding, type] = /^content-(?:transfer-encoding:[ \t]*(.*)|type:[^;]*(.*))$/i.exec(line) ?? []
  if (encoding !== undefined) return !/^(?:7bit|8bit|binary)[ \t]*$/i.test(encoding)
  if (type === undefined) return false
  const parameters = readParameters(type)
  return parameters === null || hasParameter(parameters, 'charset*') || !isLikeAscii(parameters.get('charset') ?? 'utf-8')
}

/** actix reads as much of a part as this says, and commons-fileupload reads others within one. */
function endsElsewhere (line: string, length: number): boolean {
  if (/^content-length:/i.test(line)) return line.slice(15).trim() !== String(length)
  return /^content-type:[ \t]*multipart/i.test(line)
}

/**
 * Rack, and some servers in Java and Rust, find a name in other headers, too, or in the text of a file's name; Rack 3 takes a part's id or
 * type for it behind a disposition of more than 1.5 KB. One may stand in what another begins with: `name=; name=model`.
 */
function namesIn (head: string): string[] {
  const found = head.matchAll(/(?:(?<!file)name[ \t]*=|^content-(?:id|type):)(?=\W*([\w[\].-]*))/gim)
  return Array.from(found, ([, name = '']) => name)
}

/** Some servers match names of fields in any case, or take `model[]`, `[model]` and ` model` for `model`. */
function fieldMeant (name: string, wanted: readonly string[]): string | undefined {
  const first = folded(name).replace(/^[^a-z0-9_]+|[[.\]].*$/gs, '').trim()
  const words = `${wordsOf(name)}.`
  return wanted.includes(first) ? first : wanted.find((path) => path.includes('[') && words.startsWith(`${wordsOf(path)}.`))
}

/** Normalizes a path into an object, however it is written: `svg[model]`, `svg.model`, `SVG[model][]`. */
function wordsOf (path: string): string {
  return folded(path).split(/[^a-z0-9_]+/).filter(Boolean).join('.')
}

function hasParameter (parameters: ReadonlyMap<string, string>, start: string): boolean {
  return [...parameters.keys()].some((parameter) => parameter.startsWith(start))
}

/** A name, a file's name, and what Jersey's client tells of a file: a size and dates (RFC 2183). */
const plain = /^(?:(?:name|filename\*?)=|(?:size|modification-date)=[\w ,:+-]*$)/

/**
 * Null for more than that: some readers prefer `name*`, or the pieces of one (RFC 2231), which forms must not use (RFC 7578 4.2); some
 * find `xname=` or `x='; name=model; y='`. Controls end a line, or a text, for some.
 */
function readDisposition (lines: readonly string[]): ReadonlyMap<string, string> | null {
  const values: string[] = []
  for (const line of lines) {
    const [, name, value] = /^(\w[\w-]*):([\t -~\x80-\xff]*)$/.exec(line) ?? []
    if (name === undefined || value === undefined) return null
    if (name.toLowerCase() === 'content-disposition') values.push(value)
  }
  const [only = '', ...others] = values
  const parameters = readParameters(/^[ \t]*form-data(?=[ \t;])(.*)$/.exec(only)?.[1] ?? '?')
  const hasNoOther = others.length === 0 && parameters !== null && [...parameters].every((pair) => plain.test(pair.join('=')))
  return hasNoOther ? parameters : null
}

function malformed (problem: string): BodyRefusal {
  return refused('form', 'invalid_body', { reason: `The form cannot be read: ${problem}.` })
}
