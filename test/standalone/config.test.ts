import t from 'tap'
import { OptionError } from '../../plugins/core/config/options.js'
import { PriceError } from '../../plugins/costs/price-error.js'
import { ConfigError } from '../../plugins/standalone/config-error.js'
import { configFile, demoFile, loadConfig, parseConfig, refusalLines } from '../../plugins/standalone/config.js'
import { ledgerPath, listenAddress, stateConfig } from '../../plugins/standalone/config-values.js'
import { file, hash, problemsOf, variable } from './config-text.js'

function toLines (text: string): string[] {
  try {
    parseConfig(text, {})
  } catch (error) {
    if (error instanceof ConfigError) return error.toLines('g.yaml').sort()
  }
  return []
}

t.test('the file of the documentation is read as it stands', async (t) => {
  const config = parseConfig(`
listen: { host: 127.0.0.1, port: 8080 }
upstreams:
  openai:    { url: https://api.openai.com,    credential: \${OPENAI_API_KEY} }
  anthropic: { url: https://api.anthropic.com, credential: \${ANTHROPIC_API_KEY} }
  aggregator: { url: https://models.example, credential: forward }    # \${UNSET} in a comment is nothing
groups:
  chat:
    protocols: [chat_completions, responses, images, embeddings]
    upstream: openai
    thirdParty: true
    models: [gpt-5, gpt-5-mini]
    limits: { requestsPerMinute: 600, tokensPerMinute: 2000000, concurrency: 200, balance: 50000000 }
  split:
    protocols: [messages, responses]
    upstream: { messages: anthropic, responses: openai }
  inside: { protocols: [messages], upstream: openai, thirdParty: false }
keys:
  - { id: ci, group: chat, hash: "${hash}" }
  - { id: dev, group: chat, secret: dev-only, expires: 2027-01-01T00:00:00Z, disabled: false, limits: { balance: 100000 } }
state: { engine: lmdb, path: ./data }
metrics: { path: /metrics, models: [gpt-5] }
`, { OPENAI_API_KEY: 'sk-1', ANTHROPIC_API_KEY: 'sk-2' })
  t.same(config.upstreams['openai'], { url: 'https://api.openai.com', credential: 'sk-1' })
  t.same(config.upstreams['aggregator'], { url: 'https://models.example', credential: 'forward' })
  t.same(config.groups['split']?.upstream, { messages: 'anthropic', responses: 'openai' })
  t.same(config.keys?.[1]?.expires, '2027-01-01T00:00:00Z')
  t.same(config.state, { engine: 'lmdb', path: './data' })
})

t.test('values of the environment never become syntax', async (t) => {
  const config = parseConfig(file({
    upstreams: `{ main: { url: "https://${variable('HOST_NAME')}/base", credential: ${variable('SECRET')} } }`,
  }), {
    HOST_NAME: 'models.example', SECRET: '},{#&*:"\'[x',
  })
  t.same(config.upstreams['main'], { url: 'https://models.example/base', credential: '},{#&*:"\'[x' })
})

t.test('a variable in a name is told: it would stay as it stands', async (t) => {
  const told = 'is a name with a variable, which would stay as it stands: variables are replaced in values alone'
  const rest = `limits: { maxOutputTokens: { "${variable('MODEL')}": 5 } }`
  t.same(problemsOf(file({ rest })), [`limits.maxOutputTokens.${variable('MODEL')}: ${told}`])
})

t.test('an engine that is not said is all that is missing', async (t) => {
  t.same(problemsOf(file({ rest: 'state: { path: ./data }' })), ['state.engine: is required'])
})

t.test('what only looks like a variable or an endpoint is left alone', async (t) => {
  const config = parseConfig(file({
    upstreams: `{ main: { url: "https://models.example/api/v1", credential: ${variable('SECRET')} }, v1beta: { url: ` +
      '"https://v1.example/v1/models-of-mine", credential: \'$x{y}\' } }',
    rest: 'usage: { includeUsage: { v1beta: false } }',
  }), { SECRET: variable('x:-y') })
  t.equal(Reflect.get(config.upstreams['main'] ?? {}, 'credential'), variable('x:-y'), 'what the environment holds is no syntax')
  t.same(config.usage, { includeUsage: { v1beta: false } })
})

t.test('keys may all be issued elsewhere', async (t) => {
  t.same(problemsOf('upstreams: { a: { simulate: true } }\ngroups: { a: { protocols: [messages] } }'), [])
})

t.test('a mistake is told with its line, or with that of what it is missing from', async (t) => {
  const text = [
    'upstreams:',
    '  main: { simulate: true }',
    'groups:',
    '  chat:',
    '    protocols:',
    '      - messages',
    '      - telepathy',
    '  "a.b":',
    '    upstream: main',
    'keys:',
    '  - id: one',
    '    group: chat',
    '    secret: abc',
    '  - { id: two, group: chat,',
    '      limits: { balance: -1 } }',
    'metrics: 1',
  ].join('\n')
  t.same(toLines(text), [
    'g.yaml:14: keys[1].secret: is required, or a hash',
    'g.yaml:15: keys[1].limits.balance: must be >= 0, not -1',
    'g.yaml:16: metrics: must be object, not number 1',
    'g.yaml:7: groups.chat.protocols[1]: must be one of chat_completions, responses, images, embeddings, messages, generate_content, ' +
      'not "telepathy"',
    'g.yaml:8: groups.a.b.protocols: is required',
  ])
  t.same(toLines('a: "'), [
    'g.yaml:1:5: not valid YAML: something is missing here, such as a closing quote, brace or bracket, a comma, or a blank after a colon',
  ])
  t.same(toLines('upstreams: {}'), ['g.yaml: groups: is required', 'g.yaml:1: upstreams: must not be empty'])
})

t.test('ports of other addresses, and any free ones, do not collide', async (t) => {
  for (const rest of [
    'listen: { host: 192.0.2.1, port: 9 }\nconsole: { listen: { port: 9 } }',
    'listen: { port: 0 }\nconsole: { listen: { port: 0 } }',
    'console: { listen: { port: 9 } }',
    'console: { path: /live }',
  ]) t.same(problemsOf(file({ rest })), [], rest)
})

t.test('what may be a secret in the wrong place is not shown', async (t) => {
  const wrong = [
    'listen: { port: sk-abc123 }', 'state: { engine: sk-abc123 }', `listen: { port: ${variable('SECRET')} }`,
    `state: { engine: ${variable('SECRET')} }`,
    'keys: [{ id: a, group: chat, secret: 5551234 }]', 'keys: [{ id: a, group: chat, hash: 5551234 }]', 'log: { level: sk-abc123 }',
    'validation: { maxDepth: "5551234 5551234" }', 'log: { level: "a\\nb" }',
  ]
  for (const rest of wrong) {
    const problems = problemsOf(file({ rest }).replace('keys: []\n', ''), { SECRET: 'hunter' }).join()
    t.ok(problems, rest)
    t.notMatch(problems, /abc|hunter|555|\n/, rest)
  }
})

t.test('what must be is said in words that need no schema beside them', async (t) => {
  const pool = '{ main: { members: [], retryOn: [whenever] } }'
  const text = file({
    upstreams: '{ main: { url: "", credential: s3cret } }',
    rest: `pools: ${pool}\nauth: { failures: true }\nmetrics: { labels: [team, team] }\nlog: { level: x }`,
  })
  t.same(toLines(text), [
    'g.yaml:1: upstreams.main.url: must not be empty',
    'g.yaml:4: pools.main.members: must not be empty',
    'g.yaml:4: pools.main.retryOn[0]: must be one of connect, reset, timeout, first_event, 429, 500, 502, 503, 504, 529, not "whenever"',
    'g.yaml:5: auth.failures: must be false or an object',
    'g.yaml:6: metrics.labels: has an entry twice',
    'g.yaml:7: log.level: must be one of fatal, error, warn, info, debug, trace, silent, not "x"',
  ])
  t.same(toLines(file({ rest: 'metrics: { labels: [a, b, c, d, e] }' })), ['g.yaml:4: metrics.labels: must have no more than 4 entries'])
  const labels = Array.from({ length: 17 }, (_, index) => `a${index}: b`).join(', ')
  t.same(toLines(file({ groups: `{ chat: { protocols: [messages], labels: { ${labels} } } }` })), [
    'g.yaml:2: groups.chat.labels: must have no more than 16 entries',
  ])
})

t.test('mistakes of every kind are told at once, and none that only follows from another', async (t) => {
  const text = [
    'listen: { port: 80800 }',
    `upstreams: { main: { url: "${variable('NOT_THERE')}", credential: ${variable('NOT_THERE')} } }`,
    'groups: { chat: { protocols: [messages], upstream: mian } }',
    'keys: [{ id: a, group: chta, secret: x }, { id: a, group: chat }]',
    'console: { listen: { port: 8080 } }',
    'metrics: { path: /health }',
  ].join('\n')
  t.same(toLines(text), [
    'g.yaml:1: listen.port: must be <= 65535, not 80800',
    'g.yaml:2: upstreams.main.credential: environment variable NOT_THERE is not set',
    'g.yaml:2: upstreams.main.url: environment variable NOT_THERE is not set',
    'g.yaml:3: groups.chat.upstream: names mian, which is not one of the upstreams; did you mean main?',
    'g.yaml:4: keys[0].group: there is no group chta; did you mean chat?',
    'g.yaml:4: keys[1].secret: is required, or a hash',
    'g.yaml:4: keys[1]: has the id of another key',
    "g.yaml:6: metrics.path: /health is a path of the gateway's own",
  ])
  t.same(toLines('keys: [{ id: a, group: chat, secret: x }]'), ['g.yaml: groups: is required', 'g.yaml: upstreams: is required'])
})

t.test('mistakes of YAML are sentences with line and column', async (t) => {
  for (const [text, expected] of [
    ['a: 1\n\tb: 2', /^g\.yaml:2:1: not valid YAML: a tab indents this line/],
    ['a: b: c', /^g\.yaml:1:4: not valid YAML: a second colon in one line/],
    [['a: &a [1, 1]', ...'bcdefghij'.split('').map((name, i) => `${name}: &${name} [${`*${'abcdefghi'[i]},`.repeat(9)}]`)].join('\n'),
      /^g\.yaml: .*alias/i],
    ['a: { b: 1 c: 2 }', /^g\.yaml:1:9: not valid YAML: inside of braces or brackets a comma is missing before this/],
    ['', /^g\.yaml: is empty: llm-gateway init writes one/],
    ['a: { b: [1 }', /^g\.yaml:1:\d+: not valid YAML: /],
    ['a: @b', /^g\.yaml:1:4: not valid YAML: a text may not begin with this character/],
    ['a: !!nobody b\n---\nb: 1', /not valid YAML: a second document begins/],
    ['a: *canary', /^g\.yaml:1:4: not valid YAML: an alias .* names nothing: put a text that begins with \* into quotes$/],
    ['a: &b 1\nc: *b\nd: [*c]', /^g\.yaml:3:5: not valid YAML: an alias/],
    ['a: &b { c: [*b] }', /^g\.yaml:1:13: not valid YAML: an alias/],
    ['&a *b', /not valid YAML: the parser says [A-Z_]+/],
  ] as const) t.match(toLines(text).join('\n'), expected, text)
})

t.test('a thousand groups share their limits by an alias', async (t) => {
  const groups = Array.from({ length: 1_000 }, (_, index) => `  g${index}: { protocols: [messages], upstream: main, limits: *common }\n`)
  const text = 'upstreams: { main: { url: https://api.example.com, credential: x } }\ngroups:\n' +
    `  first: { protocols: [messages], upstream: main, limits: &common { concurrency: 7 } }\n${groups.join('')}`
  t.same(toLines(text), [])
  t.equal(parseConfig(text, {}).groups['g999']?.limits?.concurrency, 7)
})

t.test('all mistakes are told at once', async (t) => {
  t.same(problemsOf(file({ groups: '{ chat: { protocols: [messages], upstream: x }, b: { protocols: [messages], upstream: y } }' })), [
    'groups.chat.upstream: names x, which is not one of the upstreams',
    'groups.b.upstream: names y, which is not one of the upstreams',
  ])
})

t.test('what is wrong in a price list is a line each in the log of a reload, as what is wrong in the file', async (t) => {
  const of = { place: 'prices.yaml', line: 2, path: 'models.a.input' }
  const error = new PriceError([{ ...of, message: 'must not be negative' }, { ...of, path: 'models.b', message: 'is not known' }])
  t.same(refusalLines(error, 'g.yaml'), ['prices.yaml:2: models.a.input: must not be negative', 'prices.yaml:2: models.b: is not known'])
})

t.test('the file is the one named, the one of the environment, or the demo', async (t) => {
  t.equal(configFile('a.yaml', { LLM_GATEWAY_CONFIG: 'b.yaml' }), 'a.yaml')
  t.equal(configFile(undefined, { LLM_GATEWAY_CONFIG: 'b.yaml' }), 'b.yaml')
  t.equal(configFile(undefined, {}), demoFile)
  t.equal(configFile(undefined, { LLM_GATEWAY_CONFIG: '' }), demoFile)
  t.same(Object.keys(loadConfig(demoFile, {}).groups), ['chat', 'messages', 'gemini'])
  const late = new OptionError('labels.header', 'must be a text')
  t.same(refusalLines(late, '/nowhere/a.yaml'), ['/nowhere/a.yaml: labels.header: must be a text'], 'a file that is gone meanwhile')
  const missing = 'the file cannot be read (ENOENT): it is not there'
  t.throws(() => loadConfig('/nowhere/gateway.yaml', {}), { name: 'ConfigError', message: missing })
  t.throws(() => loadConfig('/', {}), { name: 'ConfigError', message: 'the file cannot be read (EISDIR)' })
})

t.test('state lives in lmdb where the file says nothing', async (t) => {
  t.same(stateConfig(parseConfig(file(), {})), { engine: 'lmdb' })
  t.equal(ledgerPath(parseConfig(file(), {})), 'data/ledger')
  t.same(stateConfig(parseConfig(file({ rest: 'state: { engine: memory }' }), {})), { engine: 'memory' })
})

t.test('HOST and PORT win over the file', async (t) => {
  const plain = parseConfig(file(), {})
  const own = parseConfig(file({ rest: 'listen: { host: "::1", port: 9 }' }), {})
  t.same(listenAddress(plain, {}), { host: '127.0.0.1', port: 8080 })
  t.same(listenAddress(own, { HOST: '', PORT: '' }), { host: '::1', port: 9 })
  t.same(listenAddress(own, { HOST: '0.0.0.0', PORT: '0' }), { host: '0.0.0.0', port: 0 })
  for (const PORT of ['http', '99999', '-1', '80 ']) {
    t.throws(() => listenAddress(own, { PORT }), { name: 'ConfigError', message: 'environment variable PORT is not a port number' })
  }
})
