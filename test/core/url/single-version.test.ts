import fc from 'fast-check'
import t from 'tap'
import { withOneVersion } from '../../../plugins/core/url/single-version.js'

t.test('a version in front of the request\'s own goes, and nothing else', (t) => {
  const chat = '/v1/chat/completions'
  const cases: [dest: string, own: string, expected: string][] = [
    [chat, chat, chat],
    [`/v1${chat}`, chat, chat],
    [`/v1${chat}?a=/v1${chat}`, `${chat}?a=/v1${chat}`, `${chat}?a=/v1${chat}`],
    [`/openai/v1${chat}`, chat, `/openai${chat}`],
    [`/v1/account/openai${chat}`, chat, `/v1/account/openai${chat}`],
    [`/acme-v1${chat}`, chat, `/acme-v1${chat}`],
    ['/chat/completions', chat, '/chat/completions'],
    ['/somewhere/else', chat, '/somewhere/else'],
    [
      '/v1beta/v1beta/models/v1/v1beta/m:generateContent', '/v1beta/models/v1/v1beta/m:generateContent',
      '/v1beta/models/v1/v1beta/m:generateContent',
    ],
    [`https://provider.example/v1${chat}`, chat, `https://provider.example${chat}`],
  ]
  for (const [dest, own, expected] of cases) t.equal(withOneVersion(dest, own), expected, dest)
  t.end()
})

t.test('what has one version stays, whatever the model is called', (t) => {
  const segment = fc.constantFrom('v1', 'v1beta', 'm', 'models', 'v1%2fm')
  fc.assert(fc.property(fc.constantFrom('v1', 'v1beta'), fc.array(segment, { maxLength: 4 }), (version, rest) => {
    const own = `/${[version, 'models', ...rest].join('/')}`
    return withOneVersion(own, own) === own && withOneVersion(`/${version}${own}`, own) === own && withOneVersion(
      `/base${own}`, own
    ) === `/base${own}`
  }))
  t.end()
})
