import t from 'tap'
import { everyProtocol, listen } from '../helpers/gateway.js'
import { Wire } from '../helpers/wire.js'
import { build, version, type Target } from './rig.js'

const A = 'sk-all-A'
const B = 'sk-all-B'

/** What stands in a request: name and value in turn, as on the wire, and its query. */
interface Placement {
  readonly raw: readonly string[]
  readonly query?: string
}

type Shape = (name: string, scheme: string) => readonly string[]

const good: Record<string, Shape> = {
  plain: (name, scheme) => [name, scheme + A],
  'another case': (name, scheme) => [name.toUpperCase(), scheme.toUpperCase() + A],
  'more blanks': (name, scheme) => [name, scheme === '' ? A : `Bearer    ${A}`],
}

const bad: Record<string, [shape: Shape, code: string]> = {
  twice: [(name, scheme) => [name, scheme + A, name.toUpperCase(), scheme + A], 'duplicate_api_key'],
  'twice and different': [(name, scheme) => [name, scheme + A, name, scheme + B], 'duplicate_api_key'],
  empty: [(name) => [name, ''], 'missing_api_key'],
  'nothing after the scheme': [(name, scheme) => [name, scheme], 'missing_api_key'],
  comma: [(name, scheme) => [name, `${scheme}${A}, ${B}`], 'malformed_api_key'],
  'a blank inside': [(name, scheme) => [name, `${scheme}a b`], 'malformed_api_key'],
  'not ASCII': [(name, scheme) => [name, `${scheme}\u00e9`], 'malformed_api_key'],
  'nearly as long as Node lets all headers be': [(name, scheme) => [name, scheme + 'x'.repeat(15_000)], 'invalid_api_key'],
  unknown: [(name, scheme) => [name, `${scheme}sk-nobody`], 'invalid_api_key'],
  'a scheme in other letters': [(name, scheme) => [name, scheme === '' ? 'a b' : `Xearer ${A}`], 'malformed_api_key'],
}

const sources: readonly [target: Target, name: string, scheme: string][] = [
  [{ family: 'openai', protocol: 'chat_completions', method: 'POST', url: '/v1/chat/completions' }, 'authorization', 'bearer '],
  [{ family: 'openai', protocol: 'chat_completions', method: 'POST', url: '/v1/chat/completions' }, 'api-key', ''],
  [{ family: 'anthropic', protocol: 'messages', method: 'POST', url: '/v1/messages', headers: version }, 'x-api-key', ''],
  [{ family: 'anthropic', protocol: 'messages', method: 'POST', url: '/v1/messages', headers: version }, 'authorization', 'bearer '],
  [{ family: 'gemini', protocol: 'generate_content', method: 'POST', url: '/v1beta/models/m:generateContent' }, 'x-goog-api-key', ''],
  [{ family: 'gemini', protocol: 'generate_content', method: 'POST', url: '/v1beta/models/m:generateContent' }, 'authorization', 'bearer '],
]

async function rawStatus (
  wire: Wire, { method, url, headers = {} }: Target, { raw, query = '' }: Placement
): Promise<[status: number, code: string]> {
  const lines = [`${method} ${url}${query} HTTP/1.1`, 'host: h']
  for (let i = 0; i < raw.length; i += 2) lines.push(`${raw[i]}: ${raw[i + 1]}`)
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`)
  wire.send(Buffer.from([...lines, '', ''].join('\r\n'), 'latin1'))
  const { status, body } = await wire.reply()
  const { error } = JSON.parse(body)
  return [status, String(error?.details?.error_code ?? error?.details?.[0]?.reason ?? error?.code ?? '').toLowerCase()]
}

t.test('every place of a credential in every shape, as its bytes arrive', async (t) => {
  const { app } = await build(t, {
    groups: { all: { protocols: everyProtocol } },
    keys: [{ id: 'a', group: 'all', secret: A }, { id: 'b', group: 'all', secret: B }],
    optionalSources: ['api-key', 'gemini-bearer'],
  })
  const wire = new Wire(await listen(app))
  t.teardown(() => wire.destroy())
  let tried = 0
  const ask = async (target: Target, placement: Placement, expected: [number, string], name: string): Promise<void> => {
    tried += 1
    t.strictSame(await rawStatus(wire, target, placement), expected, `${target.family} ${name}`)
  }
  for (const [target, name, scheme] of sources) {
    for (const [what, shape] of Object.entries(good)) await ask(target, { raw: shape(name, scheme) }, [200, ''], `${name} ${what}`)
    for (const [what, [shape, code]] of Object.entries(bad)) await ask(target, { raw: shape(name, scheme) }, [401, code], `${name} ${what}`)
    if (scheme !== '') {
      for (const value of [A, `Basic ${A}`, `Digest ${A}`, ` ${A}`, `Bearer\t${A}`, `Bearer${A}`, 'Beare', `Bearer,${A}`]) {
        await ask(target, { raw: [name, value] }, [401, 'malformed_api_key'], `${name} ${value}`)
      }
    }
    await ask(target, { raw: [] }, [401, 'missing_api_key'], 'nothing')
    await ask(
      target,
      { raw: [name.replaceAll('-', '_').replace('authorization', 'authorisation'), scheme + A] },
      [401, 'missing_api_key'],
      'a name that is not quite it'
    )
    await ask(
      target,
      { raw: ['cookie', `authorization=Bearer ${A}`, 'proxy-authorization', `Bearer ${A}`] },
      [401, 'missing_api_key'],
      'carriers of nobody'
    )
  }
  const [[openai], , [anthropic], , [gemini]] = sources as [[Target], unknown, [Target], unknown, [Target]]
  const both: [target: Target, first: string[], second: string[]][] = [
    [openai, ['authorization', 'Bearer %'], ['api-key', '%']],
    [anthropic, ['x-api-key', '%'], ['authorization', 'Bearer %']],
    [gemini, ['x-goog-api-key', '%'], ['authorization', 'Bearer %']],
  ]
  for (const [target, first, second] of both) {
    const at = (carrier: string[], value: string): string[] => carrier.map((text) => text.replace('%', value))
    await ask(target, { raw: [...at(second, A), ...at(first, A)] }, [200, ''], 'the same in both')
    await ask(target, { raw: [...at(second, B), ...at(first, A)] }, [200, ''], 'two: the first source wins')
    await ask(
      target, { raw: [...at(second, A), ...at(first, 'sk-nobody')] }, [401, 'invalid_api_key'], 'no second try after an unknown one'
    )
    await ask(target, { raw: [...at(second, A), ...at(first, 'a b')] }, [401, 'malformed_api_key'], 'no second try after a malformed one')
    await ask(target, { raw: [...at(first, A), ...at(second, A), ...at(second, A)] }, [401, 'duplicate_api_key'], 'the second one twice')
    await ask(target, { raw: [...at(first, ''), ...at(second, A)] }, [200, ''], 'the first one empty')
    await ask(target, { raw: [...at(first, A), ...at(second, '')] }, [200, ''], 'the second one empty')
  }
  const queries: [query: string, status: number, code: string][] = [
    [`?key=${A}`, 200, ''], [`?key=${encodeURIComponent(A).replace('s', '%73')}`, 200, ''], [`?k%65y=${A}&alt=sse`, 200, ''],
    [`?key=${A}&key=${A}`, 401, 'duplicate_api_key'], ['?key=', 401, 'missing_api_key'], ['?key', 401, 'missing_api_key'],
    [`?key=${A},${B}`, 401, 'malformed_api_key'], ['?key=%zz', 401, 'invalid_api_key'], [`?KEY=${A}`, 401, 'missing_api_key'],
    [`?key=%2573${A}`, 401, 'invalid_api_key'],
  ]
  for (const [query, status, code] of queries) await ask(gemini, { raw: [], query }, [status, code], query)
  await ask(gemini, { raw: ['x-goog-api-key', A], query: `?key=${B}` }, [200, ''], 'header and query')
  await ask(gemini, { raw: ['x-goog-api-key', ''], query: `?key=${A}` }, [200, ''], 'empty header and query')
  for (const target of [openai, anthropic]) {
    await ask(target, { raw: ['authorization', `Bearer ${A}`], query: `?key=${A}` }, [400, 'key_in_query'], '?key= of another family')
  }
  t.ok(tried > 100, `${tried} placements`)
})

t.test('optional sources are off by default', async (t) => {
  const { app } = await build(t)
  const azure = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers: { 'api-key': 'sk-chat' } })
  t.match([azure.statusCode, azure.json()], [401, { error: { code: 'missing_api_key', message: /authorization: Bearer KEY/ } }])
  const bearer = await app.inject({
    method: 'POST', url: '/v1beta/models/m:generateContent', headers: { authorization: 'Bearer sk-gemini' },
  })
  t.match([bearer.statusCode, bearer.json()], [401, { error: { status: 'UNAUTHENTICATED', message: /x-goog-api-key: KEY/ } }])
})

t.test('two different keys are counted, or rejected', async (t) => {
  const headers = { ...version, 'x-api-key': 'sk-messages', authorization: 'Bearer sk-chat' }
  const first = await build(t)
  t.same((await first.app.inject({ method: 'POST', url: '/v1/messages', headers })).json(), { key: 'messages' })
  t.strictSame(first.counted, ['messages conflict', 'hit'])
  const strict = await build(t, { conflict: 'reject' })
  t.equal((await strict.app.inject({ method: 'POST', url: '/v1/messages', headers })).statusCode, 401)
  t.equal(
    (await strict.app.inject({
      method: 'POST', url: '/v1/messages', headers: { ...headers, authorization: 'Bearer sk-messages' },
    })).statusCode,
    200
  )
  const several = await build(t, { optionalSources: ['gemini-bearer'] })
  await several.app.inject({
    method: 'POST',
    url: '/v1beta/models/m:generateContent?key=sk-chat',
    headers: { 'x-goog-api-key': 'sk-gemini', authorization: 'Bearer sk-gemini' },
  })
  t.strictSame(several.counted, ['generate_content conflict', 'hit'], 'though a third one is the first again')
})
