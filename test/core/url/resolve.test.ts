import fc from 'fast-check'
import t from 'tap'
import { runs } from '../../helpers/runs.js'
import { createResolve, type Resolution } from '../../../plugins/core/url/resolve.js'

const resolve = createResolve('')

function read (method: string, url: string, headers: Record<string, string> = {}): string {
  return show(resolve(method, url, headers))
}

function show (resolution: Resolution): string {
  if (resolution === null) return 'not ours'
  if (resolution.kind === 'refused') return `${resolution.code} ${resolution.family.name}`
  return `${resolution.endpoint.id} ${resolution.url}`
}

const chat = 'chat_completions /v1/chat/completions'
const messages = 'messages /v1/messages'
const generate = 'generate_content.generateContent /v1beta/models/m:generateContent'

t.test('every base address that clients are given reaches the one canonical path', async (t) => {
  const cases: [url: string, expected: string][] = [
    ['/v1/chat/completions', chat],
    ['/chat/completions', chat],
    ['//chat/completions', chat],
    ['/v1//chat//completions', chat],
    ['/v1/chat/completions/', chat],
    ['/v1beta/chat/completions', chat],
    ['/v1/v1/chat/completions', chat],
    ['/v1/v1/v1/v1/v1/v1/v1/v1/chat/completions', chat],
    ['/v1/v1beta/v1alpha/chat/completions', chat],
    ['/responses', 'responses /v1/responses'],
    ['/v1/v1/responses', 'responses /v1/responses'],
    ['/images/generations', 'images /v1/images/generations'],
    ['/v1/v1/images/generations', 'images /v1/images/generations'],
    ['/v1/images/edits', 'images.edits /v1/images/edits'],
    ['/v1/images/variations', 'images.variations /v1/images/variations'],
    ['/v1/v1/embeddings', 'embeddings /v1/embeddings'],
    ['/messages', messages],
    ['/v1/v1/messages', messages],
    ['/v1beta/v1/messages', messages],
    ['/v1/messages?beta=true', `${messages}?beta=true`],
    ['/v1/v1/messages/count_tokens?beta=true', 'messages.count_tokens /v1/messages/count_tokens?beta=true'],
    ['/v1beta/models/m:generateContent', generate],
    ['/v1/models/m:generateContent', generate],
    ['/models/m:generateContent', generate],
    ['/v1/v1beta/models/m:generateContent', generate],
    ['/v1beta/v1beta/models/m:generateContent', generate],
    ['//v1beta/models/m:generateContent', generate],
    ['/v1//v1beta/models/m:generateContent', generate],
    ['/v1beta/models/m%3AgenerateContent', generate],
    ['/v1beta/models/m%3agenerateContent', generate],
    [
      '/v1beta/models/m:streamGenerateContent?alt=sse',
      'generate_content.streamGenerateContent /v1beta/models/m:streamGenerateContent?alt=sse',
    ],
    ['/v1/models/m:countTokens', 'generate_content.countTokens /v1beta/models/m:countTokens'],
    ['/v1/models/m:embedContent', 'generate_content.embedContent /v1beta/models/m:embedContent'],
    ['/v1/models/m:batchEmbedContents', 'generate_content.batchEmbedContents /v1beta/models/m:batchEmbedContents'],
    ['/v1/tunedModels/x:generateContent', 'generate_content.tuned.generateContent /v1beta/tunedModels/x:generateContent'],
    ['/v1/responses/input_tokens', 'responses.input_tokens /v1/responses/input_tokens'],
    ['/v1/v1/responses/compact', 'responses.compact /v1/responses/compact'],
    ['/responses/resp_1-a/cancel', 'responses.cancel /v1/responses/resp_1-a/cancel'],
  ]
  for (const [url, expected] of cases) t.equal(read('POST', url), expected, url)
  t.equal(read('GET', '/v1/v1/responses/resp_1?stream=true'), 'responses.retrieve /v1/responses/resp_1?stream=true')
  t.equal(read('GET', '/v1/responses/Resp_9~a:b-c.d'), 'responses.retrieve /v1/responses/Resp_9~a:b-c.d')
  t.equal(read('HEAD', '/v1/models'), 'models.openai /v1/models')
  t.equal(read('DELETE', '/responses/resp_1'), 'responses.delete /v1/responses/resp_1')
  t.equal(read('GET', '/v1/responses/resp_1/input_items'), 'responses.input_items /v1/responses/resp_1/input_items')
})

t.test('a model in the path keeps its spelling and is decoded once', async (t) => {
  const cases: [path: string, model: string][] = [
    ['/v1beta/models/vendor/x:generateContent', 'vendor/x'],
    ['/v1beta/models/vendor%2Fx:generateContent', 'vendor/x'],
    ['/v1beta/models/vendor%2fx:generateContent', 'vendor/x'],
    ['/v1beta/models/gemini-x:free@1:generateContent', 'gemini-x:free@1'],
    ['/v1beta/models/gemini-x%3Afree%401:generateContent', 'gemini-x:free@1'],
    ['/v1beta/models/publishers/google/models/x:generateContent', 'publishers/google/models/x'],
    ['/v1beta/tunedModels/t-1:generateContent', 'tunedModels/t-1'],
    ['/v1beta/models/aZ9._~+=,()!*-%2B:generateContent', 'aZ9._~+=,()!*-+'],
  ]
  for (const [url, model] of cases) {
    t.hasStrict(resolve('POST', url, {}), { kind: 'endpoint', url, model, repair: null }, url)
  }
  t.hasStrict(resolve('GET', '/v1/models/vendor%2Fm', { authorization: 'Bearer x' }), { model: 'vendor/m', url: '/v1/models/vendor%2Fm' })
})

t.test('the model list belongs to the family that its headers tell', async (t) => {
  t.equal(read('GET', '/v1/models'), 'models.openai /v1/models')
  t.equal(read('GET', '/models', { authorization: 'Bearer x' }), 'models.openai /v1/models')
  t.equal(read('GET', '/v1/v1/models', { 'anthropic-version': '2023-06-01', authorization: 'Bearer x' }), 'models.anthropic /v1/models')
  t.equal(read('GET', '/v1/models', { 'x-goog-api-key': 'k' }), 'models.gemini /v1beta/models')
  t.equal(read('GET', '/v1/models?pageSize=5&key=k'), 'models.gemini /v1beta/models?pageSize=5')
  t.equal(read('GET', '/v1beta/models'), 'models.gemini /v1beta/models')
  t.equal(read('GET', '/v1beta/models', { authorization: 'Bearer x' }), 'models.openai /v1/models')
  t.equal(read('GET', '/v1/models/m-1', { 'anthropic-version': 'x' }), 'models.anthropic.retrieve /v1/models/m-1')
})

t.test('an id may begin with any of its characters but a dot', async (t) => {
  const [endpoint] = read('GET', '/v1/responses/r').split(' ')
  for (const id of ['RESP_1', '0A', '_a', '~a', ':a', '-a', 'a.b~c:d-e']) {
    t.equal(read('GET', `/v1/responses/${id}`), `${endpoint} /v1/responses/${id}`)
  }
  for (const id of ['.a', 'a+b']) t.equal(read('GET', `/v1/responses/${id}`), 'unknown_url openai', id)
})

t.test('what was repaired has a name', async (t) => {
  const cases: [url: string, repair: string][] = [
    ['/v1/v1/messages', 'duplicate_v1'],
    ['/v1beta/v1beta/models/m:generateContent', 'duplicate_v1beta'],
    ['/v1/v1beta/models/m:generateContent', 'mixed_prefixes'],
    ['/messages', 'missing_prefix'],
    ['/v1/models/m:generateContent', 'other_version'],
    ['//v1/messages/', 'slashes'],
  ]
  for (const [url, repair] of cases) t.hasStrict(resolve('POST', url, {}), { repair }, url)
})

t.test('what is not an endpoint of ours is left alone', async (t) => {
  const urls = [
    '/', '/health', '/v10/chat/completions', '/v1x/messages', '/api/v1/messages', '/V1/messages', '/files/a%2eb.txt', '/a/../b',
    '/openai/deployments/d/chat/completions', '/openai/v1/chat/completions', '*', '', '/a\\b', '/x;y=1', '/models', '/models/a/b',
  ]
  for (const url of urls) t.equal(read('POST', url).replace(/^method_not_allowed.*/, 'not ours'), 'not ours', url)
  const preflight = { origin: 'https://page.example', 'access-control-request-method': 'POST', 'content-length': '0' }
  t.equal(read('OPTIONS', '/v1/v1/chat/completions', preflight), 'not ours', 'a preflight is the host\'s')
  t.equal(read('OPTIONS', '/v1/chat/completions'), 'method_not_allowed openai', 'no preflight')
  t.equal(
    read('OPTIONS', '/v1/chat/completions', { 'access-control-request-method': 'POST' }),
    'method_not_allowed openai',
    'a preflight says where it comes from'
  )
  t.equal(
    read('OPTIONS', '/v1/chat/completions', { ...preflight, 'content-length': '9' }), 'method_not_allowed openai', 'a preflight has no body'
  )
  t.equal(
    read('OPTIONS', '/v1/chat/completions', { ...preflight, 'transfer-encoding': 'chunked' }),
    'method_not_allowed openai',
    'a preflight has no body'
  )
})

t.test('a path that ends in an endpoint\'s action is never left to a mount, whatever stands before the action', async (t) => {
  t.equal(read('POST', '/tunedModels/m:generateContent/x/m:generateContent'), 'misspelled_action gemini')
  t.equal(read('POST', '/v1beta/models/m:generateContent/x'), 'method_not_allowed gemini')
  t.equal(read('POST', '/models/../m:countTokens'), 'ambiguous_path gemini')
  t.equal(read('POST', '/%2f/tunedModels/a%2fb:countTokens/m%3AgenerateContent?key=k'), 'ambiguous_path gemini')
  t.equal(read('POST', '/chat;a/completions;#/v1'), 'ambiguous_path openai', 'a mount cuts at the fragment')
})

t.test('an unknown path that ends in an action is told of in the terms of its family, whatever its headers', async (t) => {
  const vertex = '/projects/p/locations/l/publishers/google/models/m'
  const bearer = { authorization: 'Bearer x' }
  for (const action of [':generateContent', '%3AstreamGenerateContent?alt=sse', ':counttokens', ':generateContent/', ':a%2e:countTokens']) {
    t.equal(read('POST', `/v1${vertex}${action}`, bearer), 'unknown_url gemini', action)
  }
  t.equal(read('POST', `/v1${vertex}:rawPredict`, bearer), 'unknown_url openai')
  t.equal(read('POST', '/v1/x:generateContent/y', bearer), 'unknown_url openai')
})

t.test('an unknown path under a version is told as such, for whoever owns the mount', async (t) => {
  t.equal(read('POST', '/v1/files'), 'unknown_url openai')
  t.equal(read('POST', '/v1beta/openai/chat/completions'), 'unknown_url gemini')
  t.equal(read('GET', '/v1/files', { 'anthropic-version': '2023-06-01' }), 'unknown_url anthropic')
  t.equal(read('POST', '/v1?api-version=1%2Fmodels'), 'unknown_url openai')
  t.equal(read('POST', '/v1/../x'), 'unknown_url openai', 'whoever resolves the dots')
  t.equal(read('GET', '/v1/files/a%20b'), 'unknown_url openai', 'odd, but no endpoint however it is read')
  t.equal(read('GET', '/v1/images/a%20b'), 'blank_in_path openai', 'odd, and below an endpoint\'s root')
  t.equal(read('POST', '/v1beta/models/m:unknownAction'), 'unknown_action gemini')
  for (const action of [':generatecontent', '%3acountTOKENS', ':generateContent:other', ':generateContent/x%3Aother']) {
    t.equal(read('POST', `/v1beta/models/m${action}`), 'misspelled_action gemini', action)
  }
  for (const path of ['/v1beta/tunedmodels/m:generatecontent', '/tunedModels/m:countTOKENS', '/v1/tunedModels/m:generateContent:other']) {
    t.equal(read('POST', path), 'misspelled_action gemini', path)
  }
  t.equal(read('POST', '/v1beta/tunedModels/m:other'), 'unknown_url gemini')
  t.equal(read('POST', '/v1beta/models/countTokens:generateContents'), 'unknown_action gemini', 'a model of that name')
  t.equal(read('PUT', '/v1beta/models/m:unknownAction'), 'method_not_allowed gemini', 'it could be read as a model')
})

t.test('a doubled endpoint is refused in the terms of its last family', async (t) => {
  t.equal(read('POST', '/v1/chat/completions/chat/completions'), 'doubled_path openai')
  t.equal(read('POST', '/v1/chat/completions/v1/messages'), 'doubled_path anthropic')
  t.equal(read('POST', '/v1/messages/v1/messages'), 'doubled_path anthropic')
  t.equal(read('POST', '/v1/chat/completions/v1beta/models/m:generateContent'), 'doubled_path gemini')
  t.equal(read('POST', '/v1/responses/v1/responses'), 'doubled_path openai')
})

t.test('a path of thousands of segments is refused for little work', async (t) => {
  const { join } = Array.prototype
  const paths = { unknown_url: 'a/'.repeat(7_900), misspelled_action: 'tunedModels/m:generateContent/'.repeat(500) }
  for (const [code, path] of Object.entries(paths)) {
    let joined = 0
    Reflect.set(Array.prototype, 'join', function (this: unknown[], separator?: string) {
      joined += this.length
      return join.call(this, separator)
    })
    const answer = read('POST', `/v1beta/${path}`)
    Reflect.set(Array.prototype, 'join', join)
    t.equal(answer, `${code} gemini`)
    t.ok(joined < 40 * path.split('/').length, `${joined} segments were looked at`)
  }
})

t.test('another method of a known path is refused', async (t) => {
  t.equal(read('GET', '/v1/chat/completions'), 'method_not_allowed openai')
  t.equal(read('PUT', '/v1/messages'), 'method_not_allowed anthropic')
  t.hasStrict(resolve('PUT', '/v1/messages', {}), { allow: ['POST'] })
  t.strictSame(Object(resolve('PUT', '/v1/responses/r', {})).allow, ['GET', 'HEAD', 'DELETE'])
  t.equal(read('GET', '/v1beta/models/m:generateContent', { 'anthropic-version': 'x' }), 'method_not_allowed gemini')
})

t.test('what two readers could read in two ways is refused, never decoded and served', async (t) => {
  const urls = [
    '/v1/./chat/completions', '/v1/%2e/chat/completions', '/v1/x/../chat/completions', '/v1/%2e%2e/v1/messages', '/v1\\chat\\completions',
    '/v1/chat%2fcompletions', '/v1/chat%5ccompletions', '/v1/%63hat/completions', '/v1/%2563hat/completions', '/v1/chat/completions%00',
    '/v1/chat/completions#x', '/v1/chat/completions;a=b', '/v1/chat/ completions', '/v1/chat/completions%2520', '/v1%2fmessages',
    '/v1beta/models/a%2f..%2f..:generateContent', '/v1beta/models/a%5cb:generateContent',
    '/v1beta/models/a%2eb:generateContent', '/v1beta/models//:generateContent%00', 'http://host/v1/messages', '/%76%31/messages',
    '/v1/mess\u0001ages', '/v1%20/models%09', '/v1%20/%2e/models', '/%zz/../%6dessages', '/v1/mess%7fages', '/v1/mess%C2%85ages',
  ]
  for (const url of urls) t.match(read('POST', url), /^ambiguous_path/, url)
  for (const id of ['%2e%2e', 'a%2e', 'a%2f..%2f..%2ffiles', 'a%00', 'a;b', 'a\\b', '%61']) {
    t.match(read('GET', `/v1/responses/${id}`), /^ambiguous_path/, id)
  }
  for (const name of ['..', 'a/..', '.', 'a/./b']) t.notMatch(read('POST', `/v1beta/models/${name}:generateContent`), /^generate/, name)
  for (const id of ['.a', 'a@b', 'a,b']) t.equal(read('GET', `/v1/responses/${id}`), 'unknown_url openai', id)
})

t.test('dot segments at the end of a path are read, too', async (t) => {
  for (const end of ['x/..', '.', 'x/y/../..']) t.equal(read('POST', `/v1/chat/completions/${end}`), 'ambiguous_path openai', end)
})

t.test('what no reading makes an endpoint of is told as unknown', async (t) => {
  const below = createResolve('/llm')
  t.equal(show(below('POST', '/llm/a%20b', {})), 'unknown_url openai', 'below a prefix')
  t.equal(show(below('POST', '/llm/messages/a%20b', {})), 'unknown_url openai', 'and without a version')
  t.equal(show(below('POST', '/a%20b', {})), 'not ours')
  t.equal(show(createResolve('', false)('POST', '/v1/messages/batches/Ab', {})), 'unknown_url openai', 'an id in capitals')
})

t.test('a blank makes another path, which is refused all the same', async (t) => {
  for (const url of ['/v1/chat/completions%20', '/v1%20/models', '/%20v1/messages', '/v1/mess%20ages']) {
    t.match(read('POST', url), /^blank_in_path/, url)
  }
})

t.test('the key parameter never stays in the query, whatever its spelling, and the rest stays byte for byte', async (t) => {
  const cases: [query: string, rest: string, keys: string[]][] = [
    ['?key=abc', '', ['abc']],
    ['?alt=sse&key=abc', '?alt=sse', ['abc']],
    ['?key=abc&alt=sse', '?alt=sse', ['abc']],
    ['?a=%20+&k%65y=abc&b', '?a=%20+&b', ['abc']],
    ['?key=a%2Bb%3D', '', ['a+b=']],
    ['?key=a=b', '', ['a=b']],
    ['?key=%zz', '', ['%zz']],
    ['?key', '', ['']],
    ['?key=a&key=b', '', ['a', 'b']],
    ['?a=b;c&key=abc', '?a=b;c', ['abc']],
    ['?a=b;key=abc;c&key=abc', '?a=b;c', ['abc']],
  ]
  for (const [query, rest, keys] of cases) {
    t.hasStrict(
      resolve('POST', `/v1beta/models/m:generateContent${query}`, {}), { url: `/v1beta/models/m:generateContent${rest}`, keys }, query
    )
  }
  const plain = '/v1/messages?monkey=1&tokens=a;b&%24alt=json'
  t.hasStrict(resolve('POST', plain, {}), { url: plain, keys: null })
  t.hasStrict(resolve('POST', '/v1/unknown?key=abc&a=1', {}), { kind: 'refused', url: '/v1/unknown?a=1' })
})

t.test('whatever an upstream may take a credential from is gone from the query, and is none here', async (t) => {
  const names = [
    'KEY', '$key', '%24key', '%2524key', '$KEY', 'key[]', 'key[0]', 'key%5B%5D', '%6bey[a]', '+key', '%20key', 'key+', '%00key',
    'access_token', 'Access_Token', '$access_token',
    'access-token', 'oauth_token', 'oauth%5Ftoken', 'bearer_token', 'api_key', 'api-key', 'apikey', 'API_KEY', 'subscription-key',
    '$httpHeaders', 'httpHeaders',
  ]
  for (const name of names) {
    for (const [query = '', rest] of [
      [`?${name}=s`, ''], [`?${name}`, ''], [`?a=1&${name}=s&b`, '?a=1&b'], [`?a=1;${name}=s`, '?a=1'], [`?;${name}=s`, ''],
      [`?a=b;${name}=s;c=d&e`, '?a=b;c=d&e'],
    ]) {
      for (const path of ['/v1beta/models/m:generateContent', '/v1/chat/completions', '/v1/messages']) {
        t.hasStrict(resolve('POST', path + query, {}), { url: path + rest, keys: null }, query)
      }
      t.hasStrict(resolve('POST', `/v1/unknown${query}`, {}), { kind: 'refused', url: `/v1/unknown${rest}` })
    }
  }
  for (const name of ['keys', 'monkey', 'a[key]', 'tokens', 'access', 'x-key', '%zz']) {
    t.hasStrict(resolve('POST', `/v1/messages?${name}=s`, {}), { url: `/v1/messages?${name}=s` })
  }
})

t.test('a mount prefix stands before everything and is not sent upstream', async (t) => {
  const mounted = createResolve('/llm/')
  const at = (url: string): string => show(mounted('POST', url, {}))
  t.equal(at('/llm/v1/messages'), 'messages /llm/v1/messages')
  t.equal(at('/llm/v1/v1/messages'), 'messages /llm/v1/messages')
  t.equal(at('/llm//messages/'), 'messages /llm/v1/messages')
  t.equal(at('/v1/messages'), 'not ours')
  t.equal(at('/llm/v1/%6dessages'), 'ambiguous_path anthropic')
  t.equal(at('/%6clm/v1/messages'), 'ambiguous_path anthropic')
  t.equal(at('/other/%6dessages'), 'not ours')
  t.equal(at('/llm/else'), 'unknown_url openai')
  t.hasStrict(mounted('POST', '/llm/v1/messages', {}), { mountLength: 4 })
})

t.test('resolving is idempotent and never ambiguous, for generated spellings', async (t) => {
  const word = fc.constantFrom(
    'v1', 'v1beta', 'v1alpha', '', '.', '..', '%2e', 'chat', 'completions', 'messages', 'models', 'm:generateContent',
    'a%2Fb:streamGenerateContent', 'responses', 'x', '%00', 'embeddings', 'chat%2Fcompletions', 'tunedModels', 'count_tokens', 'V1', '\\',
    'm%3AcountTokens'
  )
  const url = fc.tuple(fc.array(word, { maxLength: 9 }), fc.constantFrom('', '?', '?a=1', '?key=k', '?a=1&key=k&b=2'))
    .map(([words, query]) => `/${words.join('/')}${query}`)
  t.doesNotThrow(() => fc.assert(fc.property(url, fc.constantFrom('GET', 'POST'), (raw, method) => {
    const first = resolve(method, raw, {})
    if (first?.kind !== 'endpoint') return true
    const again = resolve(method, first.url, {})
    const canonical = /^\/v1(?:beta)?\/(?!v1(?:beta|alpha)?\/)[^?#\\;]+(?:\?.*)?$/
    return again?.kind === 'endpoint' && again.url === first.url && again.endpoint === first.endpoint && again.repair === null &&
      canonical.test(first.url) && !first.url.includes('key=') && !first.url.includes('//') && !/\/\.{1,2}(\/|$)/.test(first.url)
  }), { numRuns: runs(20_000) }))
})
