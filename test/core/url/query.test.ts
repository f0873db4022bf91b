import t from 'tap'
import { isCarrier, splitKeys } from '../../../plugins/core/url/query.js'
import { createResolve } from '../../../plugins/core/url/resolve.js'

const resolve = createResolve('')

/** Written out, and not read from where the rule has them: each is what some provider takes a credential from. */
const carriers = [
  'key', 'KEY', '$key', '%24key', '%6bey', '%256bey', 'key[]', 'key[a]', '%20key', 'access_token', 'Access-Token', 'oauth_token',
  'bearer_token', 'key%00', '%00+$key+', '%6bey[%', '%6bey[%ff]', '%6b%65%79', 'access-token[]', 'oauth%20token.a',
  // Split once more behind what a lax reader takes for the beginning of a query, or the end of a parameter.
  '?key', '??key', '%3Fkey', '%3Bkey', ';;key', '%26key', 'a?key', 'a%3Fkey', 'a%3bkey', 'a%26key', '%253Bkey', '#key', 'key%3D',
  // PHP, Rack, qs, ASP.NET.
  '+key', '++key+', '%09key', '%0akey', 'key%09', 'key%00x', '%00key', '%EF%BB%BFkey', 'k%E2%80%8Bey', 'k%C2%ADey', '\xef\xbb\xbfkey',
  'k%00ey', '%u006bey', '%u006Bey%u0020', 'key%5B0%5D', 'key%5B%5D', '[key]', '%5Bkey%5D', '[[key', 'key]', 'key.x', 'key.', '.key',
  'api.key', 'api+key', 'api[key', 'access.token', 'access%20token', 'access[token', '$.key', '%E2%84%AAey', '\xe2\x84\xaaey',
  'key+[a]', 'key%20.x', 'access_token+[', '%2525256bey',
  'api_key', 'api-key', 'apikey', 'APIKEY', 'subscription-key', 'subscription_key', '$httpHeaders', '$httpMethod', '$ct', '%24ct',
]

const paths = [
  ['POST', '/v1/chat/completions'], ['POST', '/v1/messages'], ['POST', '/v1beta/models/gemini:generateContent'], ['GET', '/v1/models'],
  ['GET', '/v1/responses/resp_1'],
] as const

t.test('no parameter that may carry a secret stands in what is sent on, however it is spelled', async (t) => {
  for (const name of carriers) {
    for (const [method, path] of paths) {
      for (const query of [`${name}=SECRET`, `a=1&${name}=SECRET&b=%2F`, `a=1;${name}=SECRET`, `;${name}=SECRET`]) {
        const resolved = resolve(method, `${path}?${query}`, {})
        if (resolved?.kind !== 'endpoint') {
          t.not(resolved, null, 'refused, and never left to the host')
          continue
        }
        t.notMatch(resolved.url, 'SECRET', `${path}?${query}`)
        if (query.includes('b=')) t.match(resolved.url, /^[^?]+\?a=1&b=%2F$/, 'the others stay')
      }
    }
  }
  for (const kept of [
    '?keys=SECRET', '?monkey=SECRET', '?a=key', '?api_keys=1&x=%2f', '?metadata[key]=%20', '?a.key=1', '?x_key=%u006bey', '?%6beys=1',
    '?q=%3Fkey%3DSECRET', '?a=%E2%84%AAey',
  ]) {
    t.hasStrict(resolve('POST', `/v1/chat/completions${kept}`, {}), { kind: 'endpoint', url: `/v1/chat/completions${kept}` })
  }
})

t.test('a name is read in one pass, however long it is', async (t) => {
  // As an expression it took minutes.
  for (const filler of ['+', '[', '%', '%2', '%25', '.', '_', ';', '\ufeff', '%u00']) {
    t.notOk(isCarrier(`keys${filler.repeat(200_000)}x`))
    t.notOk(isCarrier(`${filler.repeat(200_000)}x`))
  }
})

t.test('a query of many odd names is refused, and not taken apart', async (t) => {
  const odd = ['&%', '&+', '&a[', '&\xe9', ';', ';key', '?a', '#', '&%26key', '&a.b%']
  for (const name of odd) {
    for (const [method, path] of [...paths, ['GET', '/v1/files'], ['POST', '/v1/messages/batches']] as const) {
      const at = (count: number): string => `${path}?a${name.repeat(count)}`
      t.hasStrict(resolve(method, at(256), {}), { kind: 'refused', code: 'crowded_query', url: path }, at(1))
      t.notMatch(resolve(method, at(255), {}), { code: 'crowded_query' }, at(1))
    }
  }
  t.match(resolve('GET', `/v1/models?${'&a.b-c=%61'.repeat(5_000)}`, {}), { kind: 'endpoint' }, 'plain names, whatever their values are')
  t.match(resolve('GET', `/v1/models?a=${'%26b%3D'.repeat(5_000)}`, {}), { kind: 'endpoint' })
  const crowd = '&%'.repeat(300)
  t.strictSame(splitKeys(`?${crowd}&key=SECRET`), { query: '', keys: null }, 'of one at a path that is none of ours nothing is left')
  t.hasStrict(resolve('PUT', `/v1/models?${crowd}`, {}), { code: 'method_not_allowed', url: '/v1/models' }, 'whatever its query')
  t.equal(resolve('GET', `/users?${crowd}`, {}), null)
})

t.test('no query holds the loop, however it is made', async (t) => {
  const names = [
    '&%', '&%26', '&%2526', '25', '%26a', '%252526a', '%3Aa', ';a-', ';', '?', '&a.', '&-a', '\xffa', '%25252525', 'k%00', '%20a',
    '&key=%25',
  ]
  const started = process.cpuUsage()
  for (const name of names) {
    for (const start of ['?a%', `?${'&%'.repeat(240)}`]) resolve('GET', `/v1/models${start}${name.repeat(60_000 / name.length)}`, {})
  }
  const { user, system } = process.cpuUsage(started)
  // Ten times what it takes; before, one of them took as much as all together may.
  t.ok((user + system) / 1_000 < 2_000)
})
