/** Servers that are wrong in one way each, and what is said of them. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { createServer as createTcpServer, type Server as TcpServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { run } from '../../bin/cli.js'
import { answerWords, failureWords } from '../../plugins/standalone/diagnosis.js'
import { freePort } from '../helpers/free-port.js'
import { listening } from '../helpers/listening.js'
import { terminal } from './terminal.js'

const secret = 'provider-secret-canary'

async function open (t: Test, server: Server | TcpServer): Promise<number> {
  return Number(new URL(await listening(t, server)).port)
}

async function doctor (t: Test, upstreams: string, rest = ''): Promise<{ code: number, lines: string[] }> {
  const file = join(
    t.testdir({
      'gateway.yaml': `upstreams: ${upstreams}\n${rest || 'groups: { a: { protocols: [chat_completions], upstream: a } }'}\nstate: { ` +
        'engine: memory }',
    }),
    'gateway.yaml'
  )
  const io = terminal()
  const lines: string[] = []
  const code = await run(['doctor', '--config', file, '--timeout-ms', '2000'], { ...io, out: (line) => lines.push(line) })
  t.notMatch([...lines, ...io.complaints].join(), secret)
  return { code, lines }
}

t.test('an upstream that answers, by each family that its groups use, with its key, header and query', async (t) => {
  const asked: string[] = []
  const list: RequestListener = ({ method, url, headers }, reply) => {
    asked.push(`${method} ${url} ${headers.authorization ?? headers['x-api-key'] ?? headers['x-goog-api-key']} ` +
      `${headers['anthropic-version'] ?? ''} ${headers['x-own'] ?? ''}`)
    reply.setHeader('content-type', 'application/json').end('{"data":[]}')
  }
  const port = await open(t, createHttpServer(list))
  const upstreams = `{ a: { url: "http://127.0.0.1:${port}/base", credential: ${secret}, headers: { x-own: "1" }, query: { v: 2 } }, b: ` +
    `{ url: "http://127.0.0.1:${port}/{model}/v9", path: verbatim, credential: ${secret}, protocols: [chat_completions] } }`
  const { code, lines } = await doctor(t, upstreams, [
    'pools: { p: { members: [a, { upstream: a, tier: 2 }] } }',
    'groups: { one: { protocols: [chat_completions], upstream: a }, two: { protocols: [messages, generate_content], upstream: { ' +
      'messages: p, generate_content: a } }, three: { protocols: [chat_completions], routes: [{ models: ["*"], upstream: b }] } }',
  ].join('\n'))
  t.equal(code, 0)
  t.same(asked.sort(), [
    `GET /base/v1/models?v=2 Bearer ${secret}  1`,
    `GET /base/v1/models?v=2 ${secret} 2023-06-01 1`,
    `GET /base/v1beta/models?v=2 ${secret}  1`,
    `GET /model/v9/models Bearer ${secret}  `,
  ])
  asked.length = 0
  const same = `{ url: "http://127.0.0.1:${port}", credential: ${secret} }`
  await doctor(t, `{ a: ${same}, b: ${same} }`,
    'groups: { one: { protocols: [messages], upstream: { messages: a }, routes: [{ models: ["m-*"], upstream: b }] } }')
  t.same(asked, Array(2).fill(`GET /v1/models ${secret} 2023-06-01 `), 'an upstream of some models, beside a map by protocol')
  t.match(lines, [/^ok {4}a {2}http:\/\/127\.0\.0\.1:\d+\/base\/v1\/models: answers \(200\), \d+ ms$/])
})

t.test('what is wrong is said: key, path, redirect, page, TLS, nobody', async (t) => {
  const status = (
    code: number, headers: Record<string, string> = {}
  ): RequestListener => (_, reply) => { reply.writeHead(code, headers).end('{}') }
  const folder = t.testdir({})
  execFileSync('openssl', [
    'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', 'key.pem', '-out', 'cert.pem',
    '-days', '2', '-subj', '/CN=localhost',
  ], {
    cwd: folder, stdio: 'ignore',
  })
  const tls = createHttpsServer({ key: readFileSync(join(folder, 'key.pem')), cert: readFileSync(join(folder, 'cert.pem')) }, status(200))
  const json = { 'content-type': 'application/json' }
  const ports = {
    key: await open(t, createHttpServer(status(401, json))),
    path: await open(t, createHttpServer(status(404, json))),
    redirect: await open(t, createHttpServer(status(301, { location: 'https://www.example.com/x?canary' }))),
    page: await open(t, createHttpServer(status(200, { 'content-type': 'text/html; charset=utf-8' }))),
    tls: await open(t, tls),
    closed: await open(t, createTcpServer((socket) => socket.destroy())),
    silent: await open(t, createTcpServer(() => {})),
    nobody: await freePort(),
  }
  const cases: ReadonlyArray<readonly [url: string, words: RegExp]> = [
    [`http://127.0.0.1:${ports.key}`, /refuses the credential \(401\)/],
    [`http://127.0.0.1:${ports.path}/v4`, /\/v4\/v1\/models: has nothing at this path \(404\)/],
    [`http://127.0.0.1:${ports.redirect}`, /leads on to https:\/\/www\.example\.com \(301\)/],
    [`http://127.0.0.1:${ports.page}`, /answers with text\/html in place of JSON/],
    [`https://127.0.0.1:${ports.tls}`, /authority that is not known here|certificate/],
    [`https://127.0.0.1:${ports.key}`, /does not speak TLS here/],
    [`http://127.0.0.1:${ports.tls}`, /https:\/\/|no reply|refuses the request/],
    [`http://127.0.0.1:${ports.closed}`, /closed without a reply/],
    [`http://127.0.0.1:${ports.nobody}`, /nobody listens/],
    [`http://127.0.0.1:${ports.silent}`, /no reply in time/],
    ['http://nobody.invalid', /no host of this name|name server/],
  ]
  for (const [url, words] of cases) {
    const { code, lines } = await doctor(t, `{ a: { url: "${url}", credential: ${secret} } }`)
    t.equal(code, 1, url)
    t.match(lines, [words], url)
    t.match(lines, [/^FAIL {2}a {2}/])
    t.notMatch(lines.join(), /canary/)
  }
  const { code, lines } = await doctor(t, `{ a: { url: "http://127.0.0.1:${ports.key}", credential: forward } }`)
  t.equal(code, 0)
  t.match(lines, [/answers \(401\), and gets the keys of callers/])
  t.match(await doctor(t, `{ a: { url: "http://127.0.0.1:${ports.path}", credential: forward } }`), {
    code: 1, lines: [/has nothing at this path/],
  })
  t.match(await doctor(t, `{ a: { url: "http://127.0.0.1:${ports.key}", credential: { file: /nowhere/at/all } } }`), {
    code: 1, lines: [/its credential cannot be read/],
  })
})

t.test('nobody to ask, and an upstream that no group uses', async (t) => {
  const io = terminal()
  t.equal(await run(['doctor'], io), 0)
  t.match(await io.shown.next(), /simulated/)
  const { lines } = await doctor(t, `{ a: { simulate: true }, b: { url: "http://127.0.0.1:${await freePort()}", credential: x } }`)
  t.match(lines, [/b {2}http:.*\/v1\/models: nobody listens/])
})

t.test('words for what no server of a test does', async (t) => {
  const json = { contentType: 'application/json', location: '' }
  for (const [status, words] of [
    [403, /credential/], [405, /path/], [429, null], [503, /fails itself/], [400, /refuses the request/], [302, /another address/],
    [200, null],
  ] as const) {
    const said = answerWords({ status, ...json })
    if (words === null) t.equal(said, null, String(status))
    else t.match(said, words)
  }
  t.match(answerWords({ status: 200, contentType: '', location: '' }), /no type of content/)
  for (const [code, words] of [
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', /authority/], ['CERT_HAS_EXPIRED', /expired/], ['EWHATEVER', /no reply \(EWHATEVER\)/],
  ] as const) t.match(failureWords(code), words)
})
