import fc from 'fast-check'
import t from 'tap'
import { baseWithoutVersions, withOneVersion } from '../../../plugins/core/url/single-version.js'

t.test('a version in front of the request\'s own goes, and nothing else', (t) => {
  const chat = '/v1/chat/completions'
  const cases: [dest: string, own: string, expected: string][] = [
    [chat, chat, chat],
    [`/v1${chat}`, chat, chat],
    [`/v1${chat}?a=/v1${chat}`, `${chat}?a=/v1${chat}`, `${chat}?a=/v1${chat}`],
    [`/v1/v1${chat}`, chat, chat],
    [`/openai/v1${chat}`, chat, `/openai${chat}`],
    ['/v1/v1beta/models/m:generateContent?alt=sse', '/v1beta/models/m:generateContent?alt=sse', '/v1beta/models/m:generateContent?alt=sse'],
    [`/v1beta/v1alpha${chat}`, chat, chat],
    [`/v1beta/openai${chat}`, chat, `/v1beta/openai${chat}`],
    [`v1${chat}`, chat, `v1${chat}`],
    [`/v1/account/openai${chat}`, chat, `/v1/account/openai${chat}`],
    [`/acme-v1${chat}`, chat, `/acme-v1${chat}`],
    ['/chat/completions', chat, '/chat/completions'],
    ['/somewhere/else', chat, '/somewhere/else'],
    ['/v1/elsewhere/a', '/v1/messages', '/v1/elsewhere/a'],
    [
      '/v1beta/v1beta/models/v1/v1beta/m:generateContent', '/v1beta/models/v1/v1beta/m:generateContent',
      '/v1beta/models/v1/v1beta/m:generateContent',
    ],
    [`https://provider.example/v1${chat}`, chat, `https://provider.example${chat}`],
  ]
  for (const [dest, own, expected] of cases) t.equal(withOneVersion(dest, own), expected, dest)
  t.end()
})

t.test('a base address loses the versions at its end, and what is none stays', (t) => {
  const cases: [base: string, expected: string][] = [
    ['http://v1/v1', 'http://v1/'], ['http://h/v1/', 'http://h/'], ['https://h:8/openai/v1?a=1', 'https://h:8/openai?a=1'],
    ['http://h', 'http://h/'], ['', ''],
  ]
  for (const [base, expected] of cases) {
    t.equal(baseWithoutVersions()(null, base), expected, base)
    t.equal(baseWithoutVersions(() => base)(null, 'http://other/v1'), expected, base)
  }
  const several: unknown = ['http://h/v1', 'http://i/v1']
  t.equal(Reflect.apply(baseWithoutVersions(), null, [null, several]), several)
  t.end()
})

t.test('what has one version stays, whatever the model is called', (t) => {
  const segment = fc.constantFrom('v1', 'v1beta', 'm', 'models', 'v1%2fm')
  fc.assert(fc.property(fc.constantFrom('v1', 'v1beta'), fc.array(segment, { maxLength: 4 }), (version, rest) => {
    const own = `/${[version, 'models', ...rest].join('/')}`
    const versions = ['v1', 'v1beta', 'v1alpha', 'v1beta/v1']
    return withOneVersion(own, own) === own && withOneVersion(`/base${own}`, own) === `/base${own}` &&
      versions.every((other) => withOneVersion(`/${other}${own}`, own) === own)
  }))
  t.end()
})
