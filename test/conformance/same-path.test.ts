/**
 * Router, policy and upstream see one and the same path, whatever a caller sends; where they would not, nothing is
 * forwarded. `npm run endurance -- paths` is the long run, the default is for every day.
 */
import fc from 'fast-check'
import Fastify from 'fastify'
import t from 'tap'
import { modelCallOf } from '../../plugins/core/call/model-call.js'
import llmGateway from '../../plugins/index.js'
import { runs } from '../helpers/runs.js'
import { startUpstream } from '../helpers/upstream.js'
import { calls, credentials, type Call } from './calls.js'
import { keys, optionsFor } from './gateway.js'

const numRuns = runs(1_500)

const version = fc.oneof(
  { weight: 30, arbitrary: fc.constantFrom('v1', 'v1beta') },
  { weight: 1, arbitrary: fc.constantFrom('v1alpha', 'V1', 'v2', 'v1%62eta', '.', '..', '%2e%2e', '', 'pre') })
const versions = fc.array(version, { maxLength: 8 })
const slash = fc.oneof({ weight: 9, arbitrary: fc.constantFrom('/', '//', '///') }, {
  weight: 1, arbitrary: fc.constantFrom('%2F', '\\', '/./'),
})
const odd = fc.constantFrom(
  'models/vendor/m:free@1:generateContent', 'models/vendor%2Fm', 'models/a%3Ab:generateContent', 'nothing',
  'chat/completions/chat/completions', 'models/m:generateContent/v1/messages'
)
const ending = fc.constantFrom('', '', '', '/', '//', '?a=%2F', '?', '%00', '%20', '?key=x', '#x', ';a')

const tailOf = ({ path }: Call): string => path.replace(/^\/v1(beta)?\//, '')

/** A known endpoint or something like one, behind a run of words and slashes, as its own clients would send it. */
const request = fc.record({
  call: fc.constantFrom(...calls),
  before: fc.tuple(versions, slash).map(([words, join]) => `/${words.map((word) => word + join).join('')}`),
  other: fc.option(odd, { freq: 8 }),
  ending,
}).map(({ call, before, other, ending }) => ({ call, url: before + (other ?? tailOf(call)) + ending }))
  // What no injected request can be made of: it takes two backslashes for the begin of a host.
  .filter(({ url }) => url.startsWith('//') || URL.canParse(url, 'http://gateway'))

t.test('router, policy and upstream see the same path', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  await app.register(llmGateway, { ...optionsFor(upstream.url), log: false, metrics: false })
  let policy: string | undefined
  let routed: string | undefined
  app.addHook('preHandler', async (request) => {
    policy = modelCallOf(request)?.url
    routed = request.raw.url
  })
  t.teardown(async () => await app.close())

  const forwarded = new Set<string>()
  await fc.assert(fc.asyncProperty(request, async ({ call: { method, family, body }, url }) => {
    upstream.forget()
    const reply = await app.inject({
      url, method, headers: { ...credentials(family, keys[family]), 'content-type': 'application/json' }, ...(body !== '' && { body }),
    })
    const [seen, ...more] = upstream.seen
    if (more.length > 0) throw new Error('sent twice')
    if (seen === undefined) {
      if (reply.statusCode < 400) throw new Error(`answered ${reply.statusCode} without the upstream`)
      return
    }
    if (seen.url !== routed || seen.url !== policy) throw new Error(`router ${routed}, policy ${policy}, upstream ${seen.url}`)
    if (!calls.some(({ path }) => path === seen.url.replace(/\?.*/, '')) && !/^\/v1(beta)?\/models\//.test(seen.url)) {
      throw new Error(`not canonical: ${seen.url}`)
    }
    forwarded.add(seen.url)
  }), { numRuns })
  t.ok(forwarded.size > 30, `${forwarded.size} canonical paths were reached in ${numRuns} runs`)
})
