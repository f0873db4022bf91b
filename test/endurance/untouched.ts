/** Random bodies in random headers: the provider gets those very bytes, our credential once, and nothing that a caller may hide. */
import fc from 'fast-check'
import Fastify from 'fastify'
import llmGateway from '../../plugins/index.js'
import { everyProtocol, gatewayOptions, providerSecret, secret } from '../helpers/gateway.js'
import { sha256, startUpstream } from '../helpers/upstream.js'
import type { Report } from './processes.js'

const stolen = 'stolen-credential-5555555555'

const carrier = fc.constantFrom('x-api-key', 'x-goog-api-key', 'api-key', 'x_api_key', 'proxy-authorization', 'cookie')
const listed = fc.subarray(['authorization', 'x-api-key', 'content-type', 'close', 'x-own', 'Authorization', 'host'])
const spaces = fc.constantFrom('', ' ', '\n\t', '  ')

/** JSON as people write it: exact numbers, escapes, blanks, unknown fields. */
const number = fc.oneof(fc.bigInt({ min: -(2n ** 80n), max: 2n ** 80n }).map(String), fc.constantFrom('1.0', '1e5', '-0', '0.10', '1E+2'))
const extra = fc.array(fc.tuple(fc.string({ maxLength: 8 }), fc.oneof(number, fc.json())), { maxLength: 4 })
const request = fc.record({
  fields: extra,
  blank: spaces,
  carriers: fc.array(carrier, { maxLength: 3 }),
  connection: listed,
  content: fc.string({ unit: 'binary', maxLength: 20 }),
})

export async function untouched ({ requests }: { readonly requests: number }): Promise<Report> {
  const upstream = await startUpstream()
  const app = Fastify()
  await app.register(llmGateway, gatewayOptions(upstream.url, { groups: { all: { protocols: everyProtocol } }, log: false }))
  const violations: string[] = []
  let sent = 0
  await fc.assert(fc.asyncProperty(request, async ({ fields, blank, carriers, connection, content }) => {
    const names = new Set(['model', 'messages', 'stream', 'n', 'stream_options'])
    const more = fields.filter(([name]) => !names.has(name) && names.add(name))
      .map(([name, value]) => `${blank}${JSON.stringify(name)}:${blank}${value},`)
    const payload = Buffer.from(`{${more.join('')}"model":"m",${blank}"messages":[{"role":"user","content":${JSON.stringify(content)}}]}`)
    const headers: Record<string, string> = { 'content-type': 'application/json', authorization: `Bearer ${secret}`, 'x-own': 'mine' }
    for (const name of carriers) headers[name] = name === 'cookie' ? `key=${stolen}` : stolen
    if (connection.length > 0) headers['connection'] = connection.join(', ')
    upstream.forget()
    const { statusCode } = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload })
    const [seen] = upstream.seen
    if (seen === undefined) {
      if (statusCode < 400) violations.push(`answered ${statusCode} without the upstream`)
      return
    }
    sent += 1
    if (seen.sha256 !== sha256(payload)) violations.push(`other bytes for ${payload.toString()}`)
    const secrets = seen.rawHeaders.filter((text) => text.includes(providerSecret))
    if (secrets.length !== 1 || seen.headers.authorization !== `Bearer ${providerSecret}`) {
      violations.push(`${secrets.length} credentials of ours`)
    }
    const told = `${seen.url} ${seen.rawHeaders.join(' ')}`
    if (told.includes(stolen) || told.includes(secret)) violations.push(`a caller's credential went on: ${JSON.stringify(headers)}`)
  }), { numRuns: requests })
  if (sent < requests / 2) violations.push(`only ${sent} of ${requests} were sent`)
  await app.close()
  await upstream.close()
  return { violations, slow: [], requests, sent }
}
