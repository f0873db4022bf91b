import t from 'tap'
import { file, hash, problemsOf, variable } from './config-text.js'

const notVariable =
  'begins a variable that is none: in its braces stands a name of letters, digits and underscores alone, without a default'

t.test('every mistake names its path, and of values only what cannot be a secret', async (t) => {
  const cases: ReadonlyArray<readonly [title: string, text: string, expected: string]> = [
    [
      'a limit of the wrong type',
      file({ groups: '{ chat: { protocols: [messages], upstream: main, limits: { balance: lots } } }' }),
      'groups.chat.limits.balance: must be integer, not string "lots"',
    ],
    [
      'a limit below its floor',
      file({ groups: '{ chat: { protocols: [], limits: { concurrency: 0 } } }' }),
      'groups.chat.limits.concurrency: must be >= 1, not 0',
    ],
    [
      'an unknown field',
      file({ groups: '{ chat: { protocols: [messages], upstream: main, modles: [] } }' }),
      'groups.chat.modles: is not known; did you mean models?',
    ],
    ['no worker', file({ rest: 'listen: { workers: 0 }' }), 'listen.workers: must be >= 1, not 0'],
    [
      'workers by another word',
      file({ rest: 'listen: { workers: all }' }),
      'listen.workers: is not valid: it must be auto, which is one for each core, or how many processes serve behind the one port; ' +
        'with more than one state.engine must be lmdb or redis',
    ],
    ['an unknown section', file({ rest: 'limit: 1' }), 'limit: is not known; did you mean limits?'],
    [
      'an unknown protocol',
      file({ groups: '{ chat: { protocols: [chat], upstream: main } }' }),
      'groups.chat.protocols[0]: must be one of chat_completions, responses, images, embeddings, messages, generate_content, not "chat"',
    ],
    [
      'an unknown protocol in a map',
      file({ groups: '{ chat: { protocols: [], upstream: { chat: main } } }' }),
      'groups.chat.upstream.chat: must be one of chat_completions, responses, images, embeddings, messages, generate_content, not "chat"',
    ],
    ['a missing section', 'upstreams: { a: { simulate: true } }', 'groups: is required'],
    ['a missing credential', file({ upstreams: '{ main: { url: "https://models.example" } }' }), 'upstreams.main.credential: is required'],
    [
      'an empty credential',
      file({ upstreams: '{ main: { url: "https://models.example", credential: "" } }' }),
      'upstreams.main.credential: is not valid: it must be visible ASCII characters without blanks; `forward` sends the caller\'s own ' +
        'key on; { file: PATH } is read again when it changes',
    ],
    [
      'a simulated upstream with an address',
      file({ upstreams: '{ main: { simulate: true, url: "https://models.example" } }' }),
      'upstreams.main.url: has no place beside simulate',
    ],
    ...[['yes', '"yes"'], ['false', 'false']].map(([given, shown]): [string, string, string] => [
      `a simulated upstream that says ${given}`,
      file({ upstreams: `{ main: { simulate: ${given} } }` }),
      `upstreams.main.simulate: must be true, not ${shown}`,
    ]),
    [
      'a name with a slash',
      file({ upstreams: '{ main: { simulate: true }, a/b: { simulate: true } }' }),
      'upstreams.a/b: is not valid: a name is 1 to 64 letters, digits, dots, dashes and underscores, and starts with a letter or digit',
    ],
    [
      'an address that is none',
      file({ upstreams: '{ main: { url: models, credential: x } }' }),
      'upstreams.main.url: is not an address such as https://api.example.com',
    ],
    [
      'an address of another kind',
      file({ upstreams: '{ main: { url: "ftp://models.example", credential: x } }' }),
      'upstreams.main.url: must begin with https:// or http://',
    ],
    [
      'an address with a password',
      file({ upstreams: '{ main: { url: "https://u:hunter2@models.example", credential: x } }' }),
      'upstreams.main.url: must not hold a name or password',
    ],
    [
      'an address with a query',
      file({ upstreams: '{ main: { url: "https://models.example?a=1", credential: x } }' }),
      'upstreams.main.url: must not hold a query or fragment',
    ],
    [
      'a group without an upstream',
      file({ upstreams: '{ a: { simulate: true }, b: { simulate: true } }', groups: '{ chat: { protocols: [messages] } }' }),
      'groups.chat.upstream: is required where there is not exactly one upstream',
    ],
    [
      'a group whose upstream is not there',
      file({ groups: '{ chat: { protocols: [messages], upstream: constructor } }' }),
      'groups.chat.upstream: names constructor, which is not one of the upstreams',
    ],
    [
      'a map that lacks a protocol',
      file({ groups: '{ chat: { protocols: [messages, images], upstream: { messages: main } } }' }),
      'groups.chat.upstream.images: is required',
    ],
    [
      'a map whose upstream is not there',
      file({ groups: '{ chat: { protocols: [messages], upstream: { messages: mian } } }' }),
      'groups.chat.upstream.messages: names mian, which is not one of the upstreams; did you mean main?',
    ],
    ['a key without a group', file({ keys: '[{ id: a, secret: x }]' }), 'keys[0].group: is required'],
    ['a key of no group', file({ keys: '[{ id: a, group: toString, secret: x }]' }), 'keys[0].group: there is no group toString'],
    ['a key without a secret', file({ keys: '[{ id: a, group: chat }]' }), 'keys[0].secret: is required, or a hash'],
    [
      'a key with both',
      file({ keys: `[{ id: a, group: chat, secret: hunter2, hash: "${hash}" }]` }),
      'keys[0].hash: has no place beside secret',
    ],
    [
      'an empty secret',
      file({ keys: '[{ id: a, group: chat, secret: "" }]' }),
      'keys[0].secret: is not valid: it must be visible ASCII characters without blanks and commas',
    ],
    [
      'a secret that no header can carry',
      file({ keys: '[{ id: a, group: chat, secret: "hunter2 hunter2" }]' }),
      'keys[0].secret: is not valid: it must be visible ASCII characters without blanks and commas',
    ],
    [
      'a hash of another form',
      file({ keys: '[{ id: a, group: chat, hash: "sha256:hunter2" }]' }),
      'keys[0].hash: is not valid: it must be sha256: and 64 hexadecimal digits in lower case',
    ],
    [
      'two keys with one id',
      file({ keys: `[{ id: a, group: chat, secret: x }, { id: a, group: chat, hash: "${hash}" }]` }),
      'keys[1]: has the id of another key',
    ],
    [
      'two keys with one secret',
      file({
        keys: '[{ id: a, group: chat, secret: hunter2 }, { id: b, group: chat, hash: ' +
          '"sha256:f52fbd32b2b3b86ff88ef6c490628285f482af15ddcb29541f94bcf526a3f6c7" }]',
      }),
      'keys[1]: has the secret of another key',
    ],
    [
      'an expiry that is no date',
      file({ keys: '[{ id: a, group: chat, secret: x, expires: tomorrow }]' }),
      'keys[0].expires: is not valid: it must be a date and time such as 2027-01-01T00:00:00Z',
    ],
    [
      'an expiry on the 40th',
      file({ keys: '[{ id: a, group: chat, secret: x, expires: 2027-01-40T00:00:00Z }]' }),
      'keys[0].expires: is not a date that exists',
    ],
    [
      'an expiry on February 30',
      file({ keys: '[{ id: a, group: chat, secret: x, expires: 2027-02-30T00:00:00Z }]' }),
      'keys[0].expires: is not a date that exists',
    ],
    [
      'a label whose name has a blank',
      file({ keys: '[{ id: a, group: chat, secret: x, labels: { the team: a } }]' }),
      'keys[0].labels.the team: is not valid: the name of a label is up to 64 letters, digits, dots, dashes and underscores',
    ],
    [
      'a label with a comma',
      file({ keys: '[{ id: a, group: chat, secret: x, labels: { team: "a,b" } }]' }),
      'keys[0].labels.team: is not valid: it must be a text of up to 128 characters without commas, equals signs and control characters',
    ],
    [
      'prices of a model with a ? in its name',
      file({ rest: 'prices: { models: { "gpt-?": { input: 1 } } }' }),
      'prices.models.gpt-?: is not valid: only * stands for what is not said',
    ],
    [
      'a usage store without a ledger on the disk',
      file({ rest: 'state: { engine: memory, usageStore: { url: "postgres://h/d" } }' }),
      'state.usageStore: needs an engine that keeps records on the disk: lmdb or redis',
    ],
    [
      'a usage store of another kind',
      file({ rest: 'state: { engine: lmdb, usageStore: { url: "mysql://h/d" } }' }),
      'state.usageStore.url: is not valid: it must be an address such as postgres://user:password@host:5432/database',
    ],
    ['redis without its address', file({ rest: 'state: { engine: redis }' }), 'state.url: is required'],
    ['an address without redis', file({ rest: 'state: { engine: lmdb, url: "redis://h" }' }), 'state.url: belongs to the engine redis'],
    ['a cluster without redis', file({ rest: 'state: { engine: memory, cluster: true }' }), 'state.cluster: belongs to the engine redis'],
    [
      'a cluster that is no yes or no',
      file({ rest: 'state: { engine: redis, url: "redis://h", cluster: 3 }' }),
      'state.cluster: must be boolean, not number 3',
    ],
    ['an unknown engine', file({ rest: 'state: { engine: sqlite }' }), 'state.engine: must be one of memory, lmdb, redis, not "sqlite"'],
    [
      'redis at an address of another kind',
      file({ rest: 'state: { engine: redis, url: "http://h" }' }),
      'state.url: is not valid: it must be an address such as redis://user:password@host:6379/0',
    ],
    [
      'a metrics path without its slash', file({ rest: 'metrics: { path: metrics }' }),
      'metrics.path: is not valid: it must begin with a slash and go on, without ?, # and %',
    ],
    ...['/metrics?x', '/a%20b', '/a#b'].map((path): [string, string, string] => [
      'a path that no request has', file({ rest: `metrics: { path: "${path}" }` }),
      'metrics.path: is not valid: it must begin with a slash and go on, without ?, # and %',
    ]),
    ...['0.0.0.0/0', '::/0'].map((network): [string, string, string] => [
      'proxies everywhere', file({ rest: `listen: { trustProxy: [0.0.0.0/1, "${network}"] }` }),
      'listen.trustProxy[1]: must be an address, a network such as 10.0.0.0/8, or one of loopback, linklocal, uniquelocal',
    ]),
    [
      'a time that no timer can be set to', file({ rest: 'state: { engine: lmdb, holdTtlMs: 2147483648 }' }),
      'state.holdTtlMs: must be <= 2147483647, not 2147483648',
    ],
    ['a port that is none', file({ rest: 'listen: { port: 70000 }' }), 'listen.port: must be <= 65535, not 70000'],
    [
      'a variable that is not set',
      file({ upstreams: `{ main: { url: "https://models.example", credential: ${variable('NOT_THERE')} } }` }),
      'upstreams.main.credential: environment variable NOT_THERE is not set',
    ],
    [
      'a variable that is empty',
      file({ keys: `[{ id: a, group: chat, secret: ${variable('EMPTY')} }]` }),
      'keys[0].secret: environment variable EMPTY is not set',
    ],
    [
      'a variable as a name',
      file({ upstreams: `{ main: { simulate: true }, "${variable('HERE')}": { simulate: true } }` }),
      `upstreams.${variable('HERE')}: is a name with a variable, which would stay as it stands: variables are replaced in values alone`,
    ],
    [
      'YAML that is none',
      file({ rest: 'secret: "hunter2' }),
      'not valid YAML: something is missing here, such as a closing quote, brace or bracket, a comma, or a blank after a colon',
    ],
    ['a field twice', file({ rest: 'keys: []' }), 'not valid YAML: the same name stands twice: keys'],
    ['a field of JSON twice', '{"keys": [], "upstreams": {"a": 1, "a": 2}}', 'not valid YAML: the same name stands twice: a'],
    [
      'an alias of nothing', 'a: *b',
      'not valid YAML: an alias (* and a name) that names nothing: put a text that begins with * into quotes',
    ],
    ['an empty file', '', 'is empty: llm-gateway init writes one to begin with'],
    [
      'a variable as a shell has it', file({ upstreams: '{ main: { url: https://models.example, credential: $THE_KEY } }' }),
      'upstreams.main.credential: looks like a variable: the name of one stands in braces behind the $',
    ],
    [
      'a protocol with a dash', file({ groups: '{ chat: { protocols: [chat-completions], upstream: main } }' }),
      'groups.chat.protocols[0]: must be one of chat_completions, responses, images, embeddings, messages, generate_content, ' +
        'not "chat-completions"; did you mean chat_completions?',
    ],
    [
      'a time with its unit', file({ rest: 'forward: { headersTimeoutMs: 30s }' }),
      'forward.headersTimeoutMs: must be integer, not string "30s"',
    ],
    ['a section without anything', file({ rest: 'metrics:' }), 'metrics: must be object, not null'],
    ['a list', '- a', 'must be object, not array'],
    [
      'a variable where a number belongs', file({ rest: `listen: { port: ${variable('HERE')} }` }),
      'listen.port: must be integer, not string: what a variable holds is always text',
    ],
    [
      'a variable with a default',
      file({ keys: `[{ id: a, group: chat, secret: "${'$'}{HERE:-hunter2}" }]` }),
      `keys[0].secret: ${notVariable}`,
    ],
    [
      'a variable whose name is none',
      file({ upstreams: `{ main: { url: "https://models.example", credential: "${'$'}{my-key}" } }` }),
      `upstreams.main.credential: ${notVariable}`,
    ],
    [
      'a variable that is not closed',
      file({ upstreams: `{ main: { url: "https://models.example", credential: "${'$'}{HERE" } }` }),
      `upstreams.main.credential: ${notVariable}`,
    ],
    [
      'an address that ends in an endpoint',
      file({ upstreams: '{ main: { url: "https://models.example/api/v1/chat/completions", credential: x } }' }),
      'upstreams.main.url: must be the base address, without the path of an endpoint',
    ],
    [
      'usage asked of no upstream',
      file({ rest: 'usage: { includeUsage: { mian: false } }' }),
      'usage.includeUsage.mian: there is no upstream mian; did you mean main?',
    ],
    ['metrics where the health is', file({ rest: 'metrics: { path: /health }' }), "metrics.path: /health is a path of the gateway's own"],
    [
      'a protocol that is misspelled',
      file({ groups: '{ chat: { protocols: [mesages] } }' }),
      'groups.chat.protocols[0]: must be one of chat_completions, responses, images, embeddings, messages, generate_content, not ' +
        '"mesages"; did you mean messages?',
    ],
    [
      'a console on the port of the gateway',
      file({ rest: 'console: { listen: { port: 8080 } }' }),
      'console.listen.port: 8080 is the port that the gateway itself listens on',
    ],
    [
      'a console on the port of a gateway on all addresses',
      file({ rest: 'listen: { host: 0.0.0.0, port: 9 }\nconsole: { listen: { port: 9, host: 192.0.2.1 } }' }),
      'console.listen.port: 9 is the port that the gateway itself listens on',
    ],
    ...['http://127.0.0.1', '127.0.0.1:8080', '[::1]', 'localhost '].map((host): [string, string, string] => [
      `a listener at ${host}`, file({ rest: `listen: { host: "${host}" }` }),
      'listen.host: must be an address or a name alone, without a scheme, a port and brackets',
    ]),
    [
      'a console at an address with its port',
      file({ rest: 'listen: { host: "::1" }\nconsole: { listen: { port: 1, host: "localhost:1" } }' }),
      'console.listen.host: must be an address or a name alone, without a scheme, a port and brackets',
    ],
    [
      'a console where the metrics are', file({ rest: 'console: { path: /metrics }' }),
      'console.path: /metrics is the path of something else',
    ],
    ['a console that is nowhere', file({ rest: 'console: { hosts: [gateway.example] }' }), 'console: needs a path or listen.port'],
    [
      'a name of the console that is an address',
      file({ rest: "console: { path: /live, hosts: ['http://gateway.example'] }" }),
      'console.hosts[0]: is not valid: a name alone, without a scheme and a port',
    ],
    [
      'a host with a star, which no name has',
      file({ rest: "metrics: { hosts: ['*.gateway.example'] }" }),
      'metrics.hosts[0]: is not valid: a name alone, without a scheme and a port',
    ],
    ...['https://*.example', 'https://App.example'].map((origin): [string, string, string] => [
      'an origin that no browser sends',
      file({ rest: `cors: { origins: ['${origin}'] }` }),
      'cors.origins[0]: is not valid: an origin is a scheme and a whole host in small letters, such as https://app.example, or *',
    ]),
  ]
  for (const [title, text, expected] of cases) {
    const problems = problemsOf(text, { EMPTY: '', HERE: 'here' })
    t.ok(problems.includes(expected), title, { expected, problems })
    t.notMatch(problems.join('\n'), /hunter2/, `${title}: no value`)
  }
})
