import t from 'tap'
import type { PoolOptions, UpstreamOptions } from '../../plugins/upstreams/options.js'
import { upstreamWarnings } from '../../plugins/upstreams/warnings.js'
import { groupMistakes, type Named } from '../../plugins/upstreams/check-groups.js'
import { HealthRegistry } from '../../plugins/upstreams/health.js'
import { readPools } from '../../plugins/upstreams/pool.js'
import { readUpstreams } from '../../plugins/upstreams/read-upstream.js'

t.test('an upstream address is read once, without the version that callers bring along', async (t) => {
  const cases: [url: string, origin: string, basePath: string][] = [
    ['https://api.example', 'https://api.example', ''],
    ['https://api.example/', 'https://api.example', ''],
    ['https://api.example/v1', 'https://api.example', ''],
    ['https://api.example/v1beta/', 'https://api.example', ''],
    ['http://127.0.0.1:11434/api/v1', 'http://127.0.0.1:11434', '/api'],
    ['https://api.example/openai/v1/', 'https://api.example', '/openai'],
    ['https://api.example/v10', 'https://api.example', '/v10'],
    ['https://api.example/v1/v1/', 'https://api.example', ''],
    ['https://relay.example/https://api.example/v1', 'https://relay.example', '/https://api.example'],
  ]
  for (const [url, origin, basePath] of cases) {
    t.match(readUpstreams({ u: { url } }).get('u'), { name: 'u', origin, basePath, account: 'u', forwards: false }, url)
  }
  t.match(readUpstreams({ u: { url: 'http://h', credential: 'forward' } }).get('u'), { forwards: true })
  const upstream = readUpstreams({ u: { url: 'http://h', credential: 'secret', account: 'a', protocols: ['messages'] } }).get('u')
  t.match(upstream, { account: 'a', protocols: new Set(['messages']), forwards: false })
  t.equal(upstream?.secret.current(), 'secret')
})

t.test('a wrong upstream is refused at start, by the name of its field and without its value', async (t) => {
  const cases: [options: UpstreamOptions, message: RegExp][] = [
    [{ url: 'nothing' }, /upstreams\.u\.url is not an address such as/],
    [{ url: 'ftp://h' }, /upstreams\.u\.url must begin with https:\/\/ or http:\/\//],
    [Object({ url: ['http://h'] }), /upstreams\.u\.url is not an address such as/],
    [{ url: 'http://user@h' }, /must not hold a name or password/],
    [{ url: 'http://:s3cret@h' }, /must not hold a name or password/],
    [{ url: 'http://h/?key=s3cret' }, /must not hold a query or fragment/],
    [{ url: 'http://h/#key=s3cret' }, /must not hold a query or fragment/],
    [{ url: 'https://h/v1/chat/completions' }, /upstreams\.u\.url must be the base address, without the path of an endpoint/],
    [{ url: 'https://h/v1beta/models/m:generateContent' }, /upstreams\.u\.url must be the base address/],
    [Object({ url: undefined, credential: 'x' }), /upstreams\.u\.url is undefined: .* environment variable/],
    [{ url: 'http://h', credential: '' }, /upstreams\.u\.credential is empty: .* environment variable/],
    [{ url: 'http://h', credential: 'undefined' }, /upstreams\.u\.credential is undefined: .* environment variable/],
    [{ url: 'http://h', credential: undefined }, /upstreams\.u\.credential is undefined: .* environment variable/],
    [Object({ url: 'http://h', credentials: 'misspelled' }), /upstreams\.u\.credentials is not known/],
    [{ url: 'http://h', credential: 's3cret with blank' }, /upstreams\.u\.credential must be visible/],
    [Object({ url: 'http://h', credential: { path: 's3cret' } }), /upstreams\.u\.credential\.path is not known/],
    [Object({ url: 'http://h', credential: {} }), /upstreams\.u\.credential\.file is required/],
    [Object({ url: 'http://h', path: 'as-is' }), /upstreams\.u\.path must be canonical or verbatim/],
    [Object({ url: 'http://h', query: { v: true } }), /upstreams\.u\.query\.v must be a text or a number/],
    [{ url: 'http://h', headers: { 'a b': 's3cret' } }, /upstreams\.u\.headers\.a b is not the name of a header/],
    [{ url: 'http://h', headers: { Host: 's3cret' } }, /upstreams\.u\.headers\.Host is a header of the connection/],
    [{ url: 'http://h', headers: { 'X-Api-Key': 's3cret' } }, /upstreams\.u\.headers\.X-Api-Key is for a credential/],
    [{ url: 'http://h', headers: { 'x-a': ' s3cret' } }, /upstreams\.u\.headers\.x-a must be visible ASCII/],
    [Object({ url: 'http://h', headers: { 'x-a': 5 } }), /upstreams\.u\.headers\.x-a must be visible ASCII/],
    [{ url: 'http://h', credentialHeader: 'content-length' }, /upstreams\.u\.credentialHeader is a header of the connection/],
    [{ url: 'http://h', models: { 'ours-*': 'm' } }, /upstreams\.u\.models\.ours-\* must be the whole name of a model/],
    [{ url: 'http://h', models: { ours: '' } }, /upstreams\.u\.models\.ours must be the name of a model/],
    [Object({ url: 'http://h', protocols: 'messages' }), /upstreams\.u\.protocols must be a list/],
    [{ url: 'http://h', protocols: ['message'] }, /upstreams\.u\.protocols holds "message", which is none of .*; did you mean messages\?/],
    [Object({ url: 'http://h', protocols: ['messages', undefined] }), /upstreams\.u\.protocols holds undefined, which is none of/],
  ]
  for (const [options, message] of cases) {
    t.throws(() => readUpstreams({ u: options }), { code: 'LLM_GATEWAY_OPTION', message })
    t.throws(() => readUpstreams({ u: options }), { message: /^(?!.*s3cret)/ })
  }
})

t.test('a wrong pool is refused at start, by name', async (t) => {
  const upstreams = readUpstreams({ a: { url: 'http://a' }, b: { url: 'http://b' } })
  const cases: [pools: Readonly<Record<string, object>>, message: RegExp][] = [
    [{ p: { members: [] } }, /pools\.p\.members must be a list of at least one upstream/],
    [{ p: {} }, /pools\.p\.members must be a list of at least one upstream/],
    [{ p: { members: ['c'] } }, /pools\.p\.members\[0\] names c, which is not one of the upstreams/],
    [{ p: { members: [{}] } }, /pools\.p\.members\[0\] names undefined, which is not one of the upstreams/],
    [{ p: { members: ['a', 'q'] }, q: { members: ['b'] } }, /pools\.p\.members\[1\] names q, which is a pool/],
    [{ p: { members: ['p'] } }, /pools\.p\.members\[0\] names p, which is a pool/],
    [{ p: { members: ['a', { upstream: 'a', tier: 2 }] } }, /pools\.p\.members holds a twice/],
    [{ a: { members: ['a'] } }, /pools\.a has the name of an upstream/],
    [{ p: { members: [{ upstream: 'a', weight: 0 }] } }, /pools\.p\.members\[0\]\.weight must be a whole number of at least 1/],
    [{ p: { members: [{ upstream: 'a', weight: 0.5 }] } }, /pools\.p\.members\[0\]\.weight must be a whole number/],
    [{ p: { members: [{ upstream: 'a', concurrency: 0 }] } }, /pools\.p\.members\[0\]\.concurrency must be a whole number/],
    [{ p: { members: [{ upstream: 'a', tier: 0 }] } }, /pools\.p\.members\[0\]\.tier must be a whole number/],
    [{ p: { members: [{ upstream: 'a', wieght: 1 }] } }, /pools\.p\.members\[0\]\.wieght is not known/],
    [{ p: { members: ['a'], attempts: 0 } }, /pools\.p\.attempts must be a whole number of at least 1/],
    [{ p: { members: ['a'], retryOn: [404] } }, /pools\.p\.retryOn holds 404, which is none of connect/],
    [{ p: { members: ['a'], retryOn: '503' } }, /pools\.p\.retryOn must be a list/],
    [{ p: { members: ['a'], affinity: 'user' } }, /pools\.p\.affinity must be conversation or key or none/],
    [{ p: { members: ['a'], retries: 1 } }, /pools\.p\.retries is not known/],
    [{ p: { members: ['a'], deadlineMs: 0 } }, /pools\.p\.deadlineMs must be a whole number/],
  ]
  for (const [pools, message] of cases) {
    t.throws(() => readPools(Object(pools), upstreams, new HealthRegistry()), { code: 'LLM_GATEWAY_OPTION', message })
  }
  const pool: PoolOptions = { members: [{ upstream: 'b', tier: 2 }, 'a'], retryOn: ['reset', 500, '503'] }
  t.match(readPools({ p: pool }, upstreams, new HealthRegistry()).get('p'), {
    members: [{ upstream: { name: 'a' }, weight: 1, concurrency: Infinity, tier: 1 }, { upstream: { name: 'b' }, tier: 2 }],
    attempts: 3,
    causes: new Set(['reset', '500', '503']),
    affinity: 'conversation',
  })
  t.strictSame(
    readPools({ p: { members: ['a'] } }, upstreams, new HealthRegistry()).get('p')?.causes, new Set(['connect', '429', '503', '529'])
  )
})

t.test('what is undefined, as of a variable that is not set, has its default', async (t) => {
  const upstreams = readUpstreams({ a: { url: 'http://a' } })
  const read = (pool: object) => readPools({ p: Object(pool) }, upstreams, new HealthRegistry()).get('p')
  const rules = { weight: undefined, concurrency: undefined, tier: undefined }
  const { members: [member], ...own } = Object(read({
    members: [{ upstream: 'a', ...rules }],
    attempts: undefined,
    retryOn: undefined,
    affinity: undefined,
    affinityTtlMs: undefined,
    attemptTimeoutMs: undefined,
    deadlineMs: undefined,
  }))
  const { members, ...others } = Object(read({ members: ['a'] }))
  t.strictSame(own, others)
  t.strictSame({ ...member, load: null }, { ...members[0], load: null })
})

t.test('what groups name is there, and speaks what they use it for', async (t) => {
  const upstreams: Named['upstreams'] = { a: {}, b: {}, c: { protocols: ['messages'] } }
  const pools = { p: { members: ['a', { upstream: 'b' }] } }
  const chat = ['chat_completions', 'responses']
  const cases: [config: Partial<Named>, mistakes: string[]][] = [
    [{ groups: { g: { protocols: chat, upstream: 'p' } } }, []],
    [{ groups: { g: { protocols: chat, upstream: 'a', routes: [{ models: [], upstream: 'p' }, { models: [], upstream: 'b' }] } } }, []],
    [{ groups: { g: { protocols: chat } } }, ['groups.g.upstream is required where there is not exactly one upstream']],
    [{ groups: { g: { protocols: chat } }, complete: false }, []],
    [{ groups: { g: { protocols: chat } }, upstreams: { a: {} }, pools: {} }, []],
    [{ groups: { g: { protocols: chat, routes: [{ models: ['m'], upstream: 'a' }] } } }, []],
    [{ groups: { g: { protocols: chat, upstream: 'x' } } }, ['groups.g.upstream names x, which is not one of the upstreams']],
    [{ groups: { g: { protocols: chat, upstream: 'toString' } } }, ['groups.g.upstream names toString, which is not one of the upstreams']],
    [
      { groups: { g: { protocols: chat, routes: [{ models: ['m'], upstream: 'x' }] } } },
      ['groups.g.routes[0].upstream names x, which is not one of the upstreams'],
    ],
    [{ groups: { g: { protocols: chat, upstream: { responses: 'a' } } } }, ['groups.g.upstream.chat_completions is required']],
    [
      { groups: { g: { protocols: chat, upstream: { responses: 'a', chat_completions: 'x' } } } },
      ['groups.g.upstream.chat_completions names x, which is not one of the upstreams'],
    ],
    [{ groups: { g: { protocols: chat, upstream: 'c' } } }, ['groups.g.upstream names c, which does not speak chat_completions']],
    [{ groups: { g: { protocols: ['messages'], upstream: 'c' } } }, []],
    [
      { groups: { g: { protocols: chat, upstream: 'a' } }, pools: { p: { members: ['a', 'b', 'c'] } } },
      ['pools.p.members holds a and c, which speak protocols of different families'],
    ],
    [
      { groups: { g: { protocols: chat, upstream: 'a' }, h: { protocols: ['messages'], upstream: 'b' } } },
      ['pools.p.members holds a and b, which speak protocols of different families'],
    ],
    [{ groups: { g: { protocols: chat, upstream: 'a' }, h: { protocols: ['messages', 'responses'], upstream: 'b' } } }, []],
    [{ groups: { g: { protocols: chat, upstream: 'p' } }, pools: Object({ p: {} }) }, []],
  ]
  for (const [config, mistakes] of cases) {
    const found = groupMistakes({ upstreams, pools, groups: {}, complete: true, ...config })
    t.strictSame(found.map(({ path, message }) => `${path} ${message}`), mistakes, JSON.stringify(config))
  }
})

t.test('a base with a version of its own is pointed at, unless its path is said', async (t) => {
  for (const url of [
    'https://h/api/paas/v4', 'https://h/v2/', 'https://h/api/v3', 'https://h/v1beta/openai', 'https://h/v3/openai', 'https://h/v2/v1',
  ]) {
    t.match(upstreamWarnings({ url }), [/^url holds .* which looks like a version/], url)
    t.same(upstreamWarnings({ url, path: 'verbatim' }), [])
    t.same(upstreamWarnings({ url, path: 'canonical' }), [])
  }
  for (const url of [
    'https://h', 'https://h/v1', 'https://h/v1beta', 'https://h/openai/v1/', 'https://h/anthropic', 'https://h/v1/acct/gw/anthropic',
    'https://h/version4',
  ]) {
    t.same(upstreamWarnings({ url }), [], url)
  }
})

t.test('mistakes are option errors', async (t) => {
  t.throws(() => readUpstreams(Object({ u: 5 })), { code: 'LLM_GATEWAY_OPTION' })
})

t.test('an address that is not encrypted is told where it leads out of the network', async (t) => {
  for (const url of ['http://api.example.com', 'http://203.0.113.9:8000', 'http://[2001:db8::1]', 'http://172.32.0.1']) {
    t.match(upstreamWarnings({ url }), [/^url is not encrypted/], url)
  }
  const near = [
    'https://api.example.com', 'http://localhost:8000', 'http://127.0.0.1', 'http://[::1]:9', 'http://10.1.2.3', 'http://172.16.0.1',
    'http://192.168.1.2',
    'http://vllm:8000', 'http://vllm.models.svc', 'http://vllm.models.svc.cluster.local', 'http://box.local', 'http://[fd00::1]',
  ]
  for (const url of near) t.same(upstreamWarnings({ url }), [], url)
})
