import fc from 'fast-check'
import t from 'tap'
import { runs } from '../helpers/runs.js'
import { endpoints, type Endpoint } from '../../plugins/protocols/index.js'
import { readMediaType } from '../../plugins/validation/media-type.js'
import { BodyRefusal } from '../../plugins/validation/body-refusal.js'

function endpointOf (id: string): Endpoint {
  const endpoint = endpoints.find((candidate) => candidate.id === id)
  if (endpoint === undefined) throw new Error(`no endpoint ${id}`)
  return endpoint
}

const chat = endpointOf('chat_completions')
const edits = endpointOf('images.edits')

function read (endpoint: Endpoint, type: string | undefined): string {
  const headers = type === undefined ? { 'content-length': '2' } : { 'content-type': type, 'content-length': '2' }
  const result = readMediaType(endpoint, headers)
  if (result instanceof BodyRefusal) return result.keyword
  return result.kind === 'form' ? `form ${result.boundary}` : result.kind
}

const json = [
  'application/json', 'APPLICATION/JSON', 'Application/Json', 'application/json;', 'application/json; ', 'application/json ;;',
  'application/json; charset=utf-8', 'application/json;charset=UTF-8', 'application/json; charset="utf-8"',
  'application/json\t; Charset=utf8', `application/json${' ;;\t;'.repeat(3_000)} charset=utf-8`,
]

const refused = [
  '', `application/json${';'.repeat(8_000)}x`,
  ' application/json', 'application/json\ta', 'application/json garbage', 'application/json, text/plain',
  'application/json,application/json',
  'application/vnd.api+json', 'application/jsonx', 'application/json-patch+json', 'application/x-json', 'text/json', 'text/plain',
  'application', '/', 'json',
  'application/json; charset=utf-16', 'application/json; charset=latin1', 'application/json; charset=', 'application/json; charset',
  'application/json; charset=utf-8; charset=utf-16', 'application/json; charset=utf-8; CHARSET=utf-8',
  'application/json; charset=utf-8; x=1', 'application/json; version=1',
  'application/json; charset="utf-8', 'application/json; charset=utf-8"', 'application/json\u00a0', 'applicatıon/json',
  'application/json\u0000', 'application/ json',
  'multipart/form-data; boundary=b', 'application/x-www-form-urlencoded', 'application/octet-stream',
]

t.test('JSON is taken in any case and with the one charset it may have', async (t) => {
  for (const type of json) {
    t.equal(read(chat, type), 'json', type)
    t.equal(read(edits, type), 'json', type)
  }
})

t.test('anything else is 415', async (t) => {
  for (const type of refused) t.equal(read(chat, type), 'media_type', type)
  t.equal(read(chat, undefined), 'media_type', 'none')
  const result = readMediaType(edits, { 'content-type': 'text/plain' })
  t.match(result, {
    error: { statusCode: 415, message: 'The content type must be application/json or multipart/form-data with a boundary.' },
  })
})

t.test('a form is taken where an endpoint takes one, with one boundary that every server reads alike', async (t) => {
  const forms = {
    '----WebKitFormBoundaryX': '----WebKitFormBoundaryX',
    '"x"': 'x',
    '()+?_-./:=': null,
    '"()+?_-./:="': '()+?_-./:=',
    '"===============123=="': '===============123==',
    'form-data-boundary-1': 'form-data-boundary-1',
  }
  for (const [given, boundary] of Object.entries(forms)) {
    t.equal(read(edits, `multipart/form-data; boundary=${given}`), boundary === null ? 'media_type' : `form ${boundary}`, given)
  }
  for (const charset of ['utf-8', 'UTF8', 'ISO-8859-1', 'US-ASCII']) {
    t.equal(read(edits, `Multipart/Form-Data; charset=${charset}; boundary=b`), 'form b')
  }
  for (const wrong of [
    '', '; boundary=', '; boundary=""', '; boundary="a "', `; boundary=${'a'.repeat(71)}`, '; boundary=a; boundary=b', '; boundary=a;x',
    '; boundary="a\\"b"', '; boundary=ä', '; boundary=b; boundary*=us-ascii\'\'c', '; boundary=b; boundary*0=c',
    '; boundary=b; charset=utf-16', '; boundary=b; charset*=us-ascii\'\'utf-16', '; boundary=b; charset=',
    '; Boundary=b', '; boundary=b; xboundary=c', '; x="; boundary=c"; boundary=b', '; boundary=b; x=y', '; boundary="a,b"',
    '; boundary="a b"', '; boundary=\'a\'', '; boundary="boundary=a"', '; boundary="=?us-ascii?Q?c?="',
  ]) {
    t.equal(read(edits, `multipart/form-data${wrong}`), 'media_type', wrong)
  }
})

t.test('a compressed body is 415, and a request without a body is told so', async (t) => {
  for (const encoding of ['gzip', '']) {
    const result = readMediaType(chat, { 'content-type': 'application/json', 'content-encoding': encoding })
    t.match(result, { keyword: 'encoding', error: { code: 'unsupported_encoding', statusCode: 415 } }, encoding)
  }
  const empty: Array<[headers: Record<string, string>, keyword: string]> = [
    [{}, 'empty'],
    [{ 'content-length': '0' }, 'empty'],
    [{ 'content-length': '1' }, 'media_type'],
    [{ 'transfer-encoding': 'chunked' }, 'media_type'],
  ]
  for (const [headers, keyword] of empty) t.match(readMediaType(chat, headers), { keyword }, JSON.stringify(headers))
})

t.test('whatever the header is, only what a strict reader calls JSON passes as JSON', async (t) => {
  const piece = fc.constantFrom(
    'application/json', 'APPLICATION/JSON', ';', ' ', '\t', 'charset=utf-8', 'charset="utf-8"', 'charset=utf-16', ',', 'text/plain', 'x',
    '"', '=', '\\'
  )
  const strict = /^application\/json[ \t]*(?:;[ \t]*)*(?:;[ \t]*charset=(?:utf-8|"utf-8")[ \t]*(?:;[ \t]*)*)?$/i
  let passed = 0
  fc.assert(fc.property(fc.array(piece, { maxLength: 6 }), fc.boolean(), (pieces, start) => {
    // Node trims header values.
    const type = ((start ? 'application/json' : '') + pieces.join('')).trim()
    const taken = read(chat, type) === 'json'
    if (taken) passed += 1
    return taken === strict.test(type)
  }), { numRuns: runs(20_000) })
  t.ok(passed > 100, `${passed} passed`)
})
