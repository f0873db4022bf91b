import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { run } from '../../bin/cli.js'
import { file, small } from './gateway-file.js'
import { terminal } from './terminal.js'

t.test('check says ok, or every mistake with its path', async (t) => {
  const io = terminal()
  t.equal(await run(['check'], io), 0)
  t.match(await io.shown.next(), /examples\/demo\/gateway\.yaml: ok$/)

  const wrong = file(t, `${small}\nkeys: [{ id: a, group: b, secret: x }, { id: a, group: a, secret: y }]`)
  const refused = terminal({ LLM_GATEWAY_CONFIG: wrong })
  t.equal(await run(['check'], refused), 1)
  t.same(refused.complaints, [`${wrong}:4: keys[0].group: there is no group b`, `${wrong}:4: keys[1]: has the id of another key`])

  const late = terminal()
  const parts = file(
    t,
    `${small}\nvalidation: { schemas: { chat: ./nowhere.json, chats: {} } }\nprices: { currency: EUR, files: [], models: {} }\nlabels: ` +
      '{ header: authorization }'
  )
  t.equal(await run(['check', '--config', parts], late), 1)
  t.equal(late.complaints.length, 3, 'what parts find, all at once')
  t.match(
    late.complaints,
    [/:4: validation\.schemas\.chat /, /:4: validation\.schemas\.chats /, /:6: labels\.header/].map(() => /gateway\.yaml:\d: [\w.]+: /)
  )
})

t.test('check refuses what a start would: an address that is none, an engine whose package is missing, a group without a way', async (
  t
) => {
  const port = terminal({ PORT: 'x' })
  t.equal(await run(['check', '--config', file(t, small)], port), 1)
  t.match(port.complaints.join(), /PORT is not a port number/)
  const zones = file(
    t,
    `${small}\nkeys:\n- { id: a, group: a, secret: x, limits: { budgets: [{ tokens: 1, period: day, timezone: Moon }] } }\n` +
      'labels: { header: authorization }'
  )
  const both = terminal()
  t.equal(await run(['check', '--config', zones], both), 1)
  t.match(both.complaints, [/:5: keys\[0\]\.limits\.budgets\[0\]\.timezone: is not a time zone/, /:6: labels\.header: must be /])
})

t.test('check goes on after a mistake: what stands for it is no mistake of others', async (t) => {
  const limits = (budget: string): string => `{ protocols: [messages], upstream: a, limits: { budgets: [${budget}] } }`
  for (const [groups, said] of [
    [
      `{ a: ${limits('{ period: day }')}, b: ${limits('{ period: hour }')} }`,
      [/groups\.a\.limits\.budgets\[0\]: must have cost or tokens/, /groups\.b\.limits\.budgets\[0\]: must have/],
    ],
    [
      `{ a: { protocols: [messages], upstream: a }, a.b: ${limits('{ period: day, tokens: 1, timezone: Moon }')} }`,
      [/groups\.a\.b\.limits\.budgets\[0\]\.timezone: is not/],
    ],
  ] as const) {
    const io = terminal()
    t.equal(
      await run(['check', '--config', file(t, `upstreams: { a: { simulate: true } }\ngroups: ${groups}\nstate: { engine: memory }`)], io), 1
    )
    t.match(io.complaints, said)
    t.equal(io.complaints.length, said.length)
  }
})

t.test('check tells mistakes of the form, of the meaning, of prices, packages and the environment in one list', async (t) => {
  const folder = t.testdir({
    'prices.yaml': 'models:\n  gpt-5: { input: -1 }\n  gpt-6: { output: many }\n',
    'gateway.yaml': [
      'listen: { port: 9100 }',
      'console: { listen: { port: 9100 } }',
      'upstreams:',
      '  main: { url: "https://models.example", credental: x }',
      `  other: { url: "https://models.example", credential: "${'$'}{NOT_THERE}" }`,
      'pools:',
      '  both: { members: [main, other], afinity: x }',
      'groups:',
      '  chat: { protocols: [chat_completions], upstream: both, modles: [] }',
      '  spend: { protocols: [messages], upstream: mian, limits: { budgets: [{ cost: 5, period: day }] } }',
      '  zoned: { protocols: [messages], upstream: both, limits: { budgets: [{ tokens: 5, period: day, timezone: Moon }] } }',
      'keys:',
      '- { id: a, group: chat, secret: x, expire: 2027-01-01T00:00:00Z }',
      '- { id: b, group: caht, secret: y }',
      '- { id: b, group: spend, secret: z }',
      'prices: { files: [./prices.yaml, ./nowhere.yaml] }',
      'validation: { schemas: { chat: ./nowhere.json } }',
      'labels: { header: authorization }',
      'costs: { headers: true }',
      'state: { engine: memory, usageStore: { url: "postgres://h/d" } }',
    ].join('\n'),
  })
  const io = terminal({ PORT: 'x' })
  t.equal(await run(['check', '--config', join(folder, 'gateway.yaml')], io), 1)
  t.strictSame(io.complaints.map((line) => line.slice(folder.length + 1).replaceAll(`${folder}/`, '')), [
    'gateway.yaml: environment variable PORT is not a port number',
    'gateway.yaml:2: console.listen.port: 9100 is the port that the gateway itself listens on',
    'gateway.yaml:4: upstreams.main.credential: is required',
    'gateway.yaml:4: upstreams.main.credental: is not known; did you mean credential?',
    'gateway.yaml:5: upstreams.other.credential: environment variable NOT_THERE is not set',
    'gateway.yaml:7: pools.both.afinity: is not known; did you mean affinity?',
    'gateway.yaml:9: groups.chat.modles: is not known; did you mean models?',
    'gateway.yaml:10: groups.spend.upstream: names mian, which is not one of the upstreams; did you mean main?',
    'gateway.yaml:11: groups.zoned.limits.budgets[0].timezone: is not a time zone, such as Europe/Berlin',
    'gateway.yaml:13: keys[0].expire: is not known; did you mean expires?',
    'gateway.yaml:14: keys[1].group: there is no group caht; did you mean chat?',
    'gateway.yaml:15: keys[2]: has the id of another key',
    'gateway.yaml:16: prices.files: prices.yaml:2: models.gpt-5.input: must not be negative',
    'gateway.yaml:16: prices.files: prices.yaml:3: models.gpt-6.output: must be a number, not text',
    'gateway.yaml:16: prices.files: nowhere.yaml: cannot be read (ENOENT)',
    'gateway.yaml:17: validation.schemas.chat: is no endpoint whose body is checked',
    'gateway.yaml:18: labels.header: must be the name of a header of its own',
    'gateway.yaml:19: costs.headers: is not known; did you mean header?',
    'gateway.yaml:20: state.usageStore: needs an engine that keeps records on the disk: lmdb or redis',
  ])
})

t.test('check tells what an entry means beside what is wrong in its form', async (t) => {
  const folder = t.testdir({
    'gateway.yaml': [
      'upstreams:',
      '  main: { url: "ftp://models.example", credential: x, acount: y }',
      '  other: { url: "https://models.example/?a=1" }',
      'pools:',
      '  both: { members: [main, mian], afinity: x }',
      'groups:',
      '  chat: { protocols: [chat_completions], upstream: bth, modles: [] }',
      '  spend: { protocols: [messages, 5], upstream: mian, limits: { budgets: [{ cost: 5, period: day }] } }',
      '  nowhere: { protocols: [messages], upstream: 5, limits: { budgets: [{ tokens: 5, period: day, timezone: Moon }] } }',
      'keys:',
      '- { id: a, group: caht, hash: "sha256:x", expires: 2027-02-30T00:00:00Z }',
      '- { id: b, group: chat, secret: y, expire: 2027-01-01T00:00:00Z, limits: { budgets: [{ tokens: 5, period: day, timezone: M }] } }',
      '- { id: b, group: spend, secret: z, disabled: 1 }',
      '- { group: spnd, secret: z }',
      '- [id]',
      'state: { engine: redis, url: "redis://127.0.0.1:9", password: { file: ./none },',
      '  usageStore: { url: "postgres://h/d", password: { file: ./none } } }',
    ].join('\n'),
  })
  const io = terminal()
  t.equal(await run(['check', '--config', join(folder, 'gateway.yaml')], io), 1)
  t.strictSame(io.complaints.map((line) => line.slice(folder.length + 'gateway.yaml'.length + 2)), [
    '2: upstreams.main.acount: is not known; did you mean account?',
    '2: upstreams.main.url: must begin with https:// or http://',
    '3: upstreams.other.credential: is required',
    '3: upstreams.other.url: must not hold a query or fragment',
    '5: pools.both.afinity: is not known; did you mean affinity?',
    '5: pools.both.members[1]: names mian, which is not one of the upstreams; did you mean main?',
    '7: groups.chat.modles: is not known; did you mean models?',
    '7: groups.chat.upstream: names bth, which is not one of the upstreams; did you mean both?',
    '8: groups.spend.protocols[1]: must be one of chat_completions, responses, images, embeddings, messages, generate_content, not 5',
    '8: groups.spend.upstream: names mian, which is not one of the upstreams; did you mean main?',
    '8: groups.spend.limits.budgets[0].cost: needs prices: without a price list nothing costs anything',
    '9: groups.nowhere.upstream: must be string or object, not number 5',
    '9: groups.nowhere.limits.budgets[0].timezone: is not a time zone, such as Europe/Berlin',
    '11: keys[0].hash: is not valid: it must be sha256: and 64 hexadecimal digits in lower case',
    '11: keys[0].group: there is no group caht; did you mean chat?',
    '11: keys[0].expires: is not a date that exists',
    '12: keys[1].expire: is not known; did you mean expires?',
    '12: keys[1].limits.budgets[0].timezone: is not a time zone, such as Europe/Berlin',
    '13: keys[2].disabled: must be boolean, not number 1',
    '13: keys[2]: has the id of another key',
    '14: keys[3].id: is required',
    '14: keys[3].group: there is no group spnd; did you mean spend?',
    '14: keys[3]: has the secret of another key',
    '15: keys[4]: must be object, not array',
    '16: state.password.file: cannot be read: ENOENT',
    '17: state.usageStore.password.file: cannot be read: ENOENT',
  ])
})

t.test('a name with a blank is told whole, and hides no other mistake', async (t) => {
  const folder = t.testdir({
    'gateway.yaml': [
      'upstreams:',
      '  main: { url: "https://models.example", credential: x, credentialHeader: "api key", headers: { "b ad": y } }',
      'groups: { chat: { protocols: [messages] } }',
    ].join('\n'),
  })
  const io = terminal()
  t.equal(await run(['check', '--config', join(folder, 'gateway.yaml')], io), 1)
  t.strictSame(io.complaints.map((line) => line.slice(folder.length + 'gateway.yaml'.length + 2)), [
    '2: upstreams.main.headers.b ad: is not the name of a header',
    '2: upstreams.main.credentialHeader: is not the name of a header',
  ])
})

t.test('check warns of a credential that is not there yet and of what no request reaches, and start says so', async (t) => {
  const folder = t.testdir({ 'long.txt': 'two words', 'right.txt': 'secret\n' })
  const upstream = (name: string): string => `{ url: "https://models.example", credential: { file: ${folder}/${name}.txt } }`
  const text = `upstreams: { a: ${upstream('none')}, b: ${upstream('long')}, c: ${upstream('right')} }\n` +
    'groups: { a: { protocols: [messages], upstream: { messages: a } }, b: { protocols: [messages], upstream: b, routes: [' +
    '{ models: [x], upstream: a }, { models: [y, "*"], upstream: b }, { models: [z], upstream: a }] } }\n' +
    'pools: { both: { members: [b, a] } }\nstate: { engine: memory }'
  writeFileSync(join(folder, 'gateway.yaml'), text)
  const io = terminal({ PORT: '0' })
  t.equal(await run(['check', '--config', join(folder, 'gateway.yaml')], io), 0)
  const warnings = [
    /groups\.b\.routes\[2\]: gets no request, because routes\[1\] before it takes every model$/,
    /pools\.both: no group names it, so that it gets no request$/, /upstreams\.c: no group names it/,
    /upstreams\.a\.credential\.file cannot be read \(ENOENT\): requests to it are refused until it can$/,
    /upstreams\.b\.credential\.file holds no credential: requests to it are refused until it does$/,
  ]
  t.match(io.complaints, warnings)
  t.equal(io.complaints.length, 5)
  const exit = run(['start', '--config', join(folder, 'gateway.yaml')], io)
  await io.shown.next()
  await io.shown.next()
  const logged: string[] = []
  while (logged.length < 6) logged.push(await io.logged.next())
  for (const warning of warnings) t.match(logged.join('\n'), new RegExp(warning.source.replace('$', '')))
  io.send('SIGTERM')
  t.equal(await exit, 0)
})

t.test('who has a gateway.yaml here and does not name it is told that it is the demo', async (t) => {
  t.chdir(t.testdir({ 'gateway.yaml': small }))
  const words = 'this is the demo: --config gateway.yaml takes the file of this folder'
  for (const [args, env, said] of [
    [['check'], {}, [words]], [['check', '--config', 'gateway.yaml'], {}, []], [['check'], { LLM_GATEWAY_CONFIG: 'gateway.yaml' }, []],
  ] as const) {
    const io = terminal(env)
    t.equal(await run(args, io), 0)
    t.same(io.complaints, said)
  }
  const io = terminal()
  t.equal(await run(['upstreams', '--url', 'http://127.0.0.1:1'], io), 1)
  t.match(io.complaints, [/no answer from http:/], 'the gateway at an address is not the demo')
  const kit = terminal()
  t.equal(await run(['conformance', '--base-url', 'http://127.0.0.1:1', '--check', '1'], kit), 0)
  t.match(kit.complaints, [/^\[1\/1\] 1 n\/a/], 'nor is what the kit tests')
})

t.test('a budget in money without a price is refused by check, start and a reload', async (t) => {
  const group = (...budgets: string[]): string =>
    `upstreams: { a: { simulate: true } }\ngroups:\n  a: { protocols: [messages], limits: { budgets: [${budgets.join()}] } }\n` +
    'state: { engine: memory }\n'
  const [tokens, cost] = ['{ tokens: 5, period: day }', '{ cost: 5, period: day }']
  const key = 'keys: [{ id: a, group: a, secret: x, limits: { budgets: [{ cost: 5, period: total }] } }]'
  for (const [text, said] of [
    [group(tokens, cost), /:3: groups\.a\.limits\.budgets\[1\]\.cost: needs prices: without a price list nothing costs anything/],
    [`${group(tokens, cost)}prices: { currency: USD }`, /:3: groups\.a\.limits\.budgets\[1\]\.cost: needs prices/],
    [group(tokens) + key, /:5: keys\[0\]\.limits\.budgets\[0\]\.cost: needs prices/],
  ] as const) {
    for (const name of ['check', 'start']) {
      const io = terminal({ PORT: '0' })
      t.equal(await run([name, '--config', file(t, text)], io), 1)
      t.match(io.complaints, [said], name)
    }
  }
  const path = file(t, group(tokens))
  const io = terminal({ PORT: '0' })
  const exit = run(['start', '--config', path], io)
  await io.shown.next()
  t.match(await io.logged.next(), 'state.engine is memory')
  writeFileSync(path, group(tokens, cost))
  io.send('SIGHUP')
  t.match(await io.logged.next(), /gateway\.yaml:3: groups\.a\.limits\.budgets\[1\]\.cost: needs prices/)
  io.send('SIGTERM')
  t.equal(await exit, 0)
})

t.test('check tells nothing of names where none of what they name can be read', async (t) => {
  const one = 'upstreams: { a: { simulate: true } }'
  for (const [text, said] of [
    ['upstreams: 3\ngroups: { a: { protocols: [messages], upstream: b } }', /:1: upstreams: must be object/],
    ['upstreams: { "a b": { simulate: true } }\ngroups: { a: { protocols: [messages], upstream: b } }', /:1: upstreams\.a b: is not valid/],
    [`${one}\ngruops: { b: { protocols: [messages] } }\nkeys: [{ id: a, group: b, secret: x }]`, /:2: gruops: .* did you mean groups/],
    [`${one}\ngroups: { a: { protocols: [messages], upstream: b } }\npools: []`, /:3: pools: must be object/],
  ] as const) {
    const io = terminal()
    t.equal(await run(['check', '--config', file(t, `${text}\nvalidation: { schemas: { chat: ./a.json } }`)], io), 1)
    const all = io.complaints.join('\n')
    t.match(all, said)
    t.match(all, /validation\.schemas\.chat: /)
    t.notMatch(all, /: there is no |: names /)
  }
})

t.test('check tells what nobody names a field for beside what is named', async (t) => {
  const io = terminal()
  t.equal(await run(['check', '--config', file(t, `${small}\nmetrics: { path: /v1/models }\nlabels: { heder: a }`)], io), 1)
  t.match(io.complaints, [/gateway\.yaml: Method .* already declared for route '\/v1\/models'/, /gateway\.yaml:5: labels\.heder: is not known/])
})

t.test('prices of the file itself that no schema can refuse are told with their lines', async (t) => {
  for (const [models, said] of [
    [
      'currency: USD\n  models:\n    a: { input: 1, from: 2027-02-01, until: 2027-01-01 }\n    b: { input: 1, from: 2027-02-30 }',
      [/gateway\.yaml:7: prices\.models\.a\.until: must be after from$/, /:8: prices\.models\.b\.from: must be a date/],
    ],
    ['currency: XXQ', [/gateway\.yaml:5: prices\.currency: is not a currency of ISO 4217$/]],
  ] as const) {
    const io = terminal()
    t.equal(await run(['check', '--config', file(t, `${small}\nprices:\n  ${models}`)], io), 1)
    t.match(io.complaints, said)
    t.equal(io.complaints.length, said.length)
  }
})

t.test('a console may listen on an address of either kind', async (t) => {
  for (const host of ['127.0.0.1', '"::1"', '"::"']) {
    const io = terminal()
    t.equal(await run(['check', '--config', file(t, `${small}\nconsole: { listen: { port: 9464, host: ${host} } }`)], io), 0, host)
    t.strictSame(io.complaints, [])
  }
})

t.test('check looks for the packages of the state, and opens nothing of it', async (t) => {
  for (const state of [
    '{ engine: lmdb, path: /nowhere/at/all }',
    '{ engine: redis, url: "redis://127.0.0.1:9", usageStore: { url: "postgres://127.0.0.1:9/a" } }',
  ]) {
    const io = terminal()
    t.equal(await run(['check', '--config', file(t, small.replace('{ engine: memory }', state))], io), 0, io.complaints.join())
  }
})

t.test('check warns of addresses that lead out of the network unencrypted', async (t) => {
  const io = terminal()
  const text = 'upstreams: { a: { url: "http://api.example.com", credential: x }, b: { simulate: true } }\ngroups: { a: { protocols: ' +
    '[messages], upstream: a }, b: { protocols: [messages], upstream: b } }\nstate: { engine: memory }'
  t.equal(await run(['check', '--config', file(t, text)], io), 0)
  t.match(io.complaints, [/warning: upstreams\.a\.url is not encrypted/])
})
