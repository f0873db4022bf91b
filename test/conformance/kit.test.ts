import { readFile } from 'node:fs/promises'
import { createServer, request, type RequestListener } from 'node:http'
import { pipeline } from 'node:stream'
import t from 'tap'
import { growth, grewBy, tokenSums } from '../../bin/conformance/metrics.js'
import { run } from '../../bin/cli.js'
import { keys, startGateway } from './gateway.js'
import { freePort } from '../helpers/free-port.js'
import { listening } from '../helpers/listening.js'

interface Outcome {
  code: number
  out: string
  err: string
}

async function kit (...args: string[]): Promise<Outcome> {
  const [out, err]: string[][] = [[], []]
  const code = await run(['conformance', ...args], {
    env: {}, out: (line) => out?.push(line), err: (line) => err?.push(line), progress: null, onSignal: () => {}, exit: () => {},
  })
  return { code, out: (out ?? []).join('\n'), err: (err ?? []).join('\n') }
}

const plainKeys = ['--key-openai', 'k1', '--key-anthropic', 'k2', '--key-gemini', 'k3']

// The kit's own provider in the place of a gateway: whatever needs a gateway has to fail there.
t.test('a gateway that does nothing fails what a gateway is for', async (t) => {
  const port = await freePort()
  const file = t.testdir({}) + '/results.json'
  const address = `http://127.0.0.1:${port}`
  const junit = file.replace('json', 'xml')
  const { code, out, err } = await kit(
    '--base-url', address, '--upstream-port', `${port}`, ...plainKeys, '--json', file, '--junit', junit, '--profile', 'house'
  )
  t.equal(code, 1)
  const { counts, results } = JSON.parse(await readFile(file, 'utf8'))
  const failed = results.filter(({ verdict }: { verdict: string }) => verdict === 'fail').map(({ number }: { number: number }) => number)
  t.strictSame(failed, [
    2, 3, 4, 6, 7, 9, 10, 12, 15, 22, 24, 26, 27, 28, 29, 33, 39, 60, 62, 64, 103, 104, 105, 107, 108, 109, 110, 111, 112,
  ])
  t.match(out, new RegExp(`${counts.pass} passed, ${failed.length} failed, ${counts['n/a']} not applicable`))
  const xml = await readFile(junit, 'utf8')
  t.match(xml, `<testsuite name="conformance" tests="79" failures="${failed.length}" skipped="${counts['n/a']}">`)
  t.equal(xml.match(/<failure message="/g)?.length, failed.length)
  t.match(
    xml, /<testcase classname="conformance" name="16 a mount prefix" time="0"><skipped message="needs a path in --base-url"\/><\/testcase>/
  )
  t.match(out, / 16 {2}n\/a .* needs a path in --base-url/)
  t.match(err, /^\[1\/79\] 1 pass/)
})

t.test('without metrics that count, a stream is not metered', async (t) => {
  const port = await freePort()
  const address = `http://127.0.0.1:${port}`
  const { out } = await kit(
    '--base-url', address, '--upstream-port', `${port}`, '--metrics-url', address, ...plainKeys, '--check', '41', '--timeout-ms', '2000'
  )
  t.match(out, /fail .* instead of 12 \+ 5: nothing/)
})

t.test('a gateway whose far side is not ours', async (t) => {
  const { origin } = await startGateway(t)
  const { code, out } = await kit('--base-url', origin, '--key-openai', keys.openai, '--check', '1', '--check', '13')
  t.equal(code, 0)
  t.match(out, /1 {2}pass .* 200\n 13 {2}n\/a .* needs --key-gemini, --upstream-port/)
})

t.test('with one key for all families, no key is that of another group', async (t) => {
  const { origin } = await startGateway(t)
  const same = ['--key-openai', keys.openai, '--key-anthropic', keys.openai, '--key-gemini', keys.openai]
  t.match(await kit('--base-url', origin, ...same, '--check', '27'), { code: 0, out: /27 {2}n\/a .* needs another key for each family/ })
})

t.test('a wrong command line', async (t) => {
  const rows: Array<[args: string[], said: RegExp]> = [
    [[], /--base-url must be an http/],
    [['--base-url', 'ftp://x'], /--base-url must be an http/],
    [['--base-url', 'http://x', '--upstream-port', '70000'], /--upstream-port must be a whole number up to 65535/],
    [['--base-url', 'http://x', '--metrics-url', 'x'], /--metrics-url must be an http/],
    [['--base-url', 'http://x', '--check', '999'], /names no check/],
    [['--base-url', 'http://x', '--profile', 'strict'], /--profile must be translating, transparent, house/],
    [['--nonsense'], /nonsense/],
  ]
  for (const [args, said] of rows) t.match(await kit(...args), { code: 2, err: said }, args.join(' '))
  for (const option of ['--help', '-h']) t.match(await kit(option), { code: 0, out: /--key-anthropic/ })
})

t.test('one check, and a gateway that is not there', async (t) => {
  const nobody = 'http://127.0.0.1:1/'
  t.match(await kit('--base-url', nobody, '--check', '1', '--check', '5', '--key-openai', 'k'), {
    code: 1, out: /1 {2}fail .*ECONNREFUSED[^]* 5 {2}n\/a/,
  })
})

t.test('our own gateway fails nothing', async (t) => {
  const port = await freePort()
  const { origin } = await startGateway(t, { prefix: '/pre' }, `http://127.0.0.1:${port}`)
  const { code, out } = await kit(
    '--base-url', `${origin}/pre/`, '--upstream-port', `${port}`, '--metrics-url', `${origin}/metrics`,
    '--key-openai', keys.openai, '--key-anthropic', keys.anthropic, '--key-gemini', keys.gemini, '--key-spent', keys.spent, '--profile',
    'house')
  t.equal(code, 0, out)
  t.match(out, /79 passed, 0 failed, 0 not applicable/)
})

t.test('what a check sees of a gateway that answers nonsense', async (t) => {
  const rows: ReadonlyArray<readonly [check: string, answer: RequestListener, seen: RegExp]> = [
    ['26', (_, res) => res.writeHead(401).end('no'), /chat without a key content type undefined/],
    ['26', (_, res) => res.writeHead(401, { 'content-type': 'application/json' }).end('"no"'), /not the envelope of this family: "no"/],
    [
      '26',
      (_, res) => res.writeHead(401, { 'content-type': 'application/json' }).end(`{"error":{"message":"${'long '.repeat(99)}"}}`),
      /long lo/,
    ],
    ['22', (_, res) => res.writeHead(401).end(), /401 twice/],
    ['22', (_, res) => res.writeHead(500).end(), /statuses 500, 500/],
    [
      '15',
      (_, res) => res.writeHead(404, { 'content-type': 'application/json' })
        .end('{"error":{"message":"no","type":"t","param":null,"code":null}}'),
      /no hint in: no/,
    ],
    ['28', (_, res) => res.writeHead(401).end(), /x-should-retry: missing/],
    ['104', (_, res) => res.end('{}'), /0 of 2 requests arrived \(status 200, 200\)/],
    ['59', (_, res) => res.writeHead(404).end('{"error":{"message":"no"}}'), /chat: status 404, and nothing was forwarded/],
    ['54', (_, res) => res.writeHead(404).end('{}'), /status 404, and nothing was forwarded/],
    ['102', (_, res) => res.writeHead(404).end('{}'), /status 404, and nothing was forwarded/],
    [
      '58',
      (_, res) => res.writeHead(200, { 'content-type': 'text/event-stream' }).end('event: a\ndata: {}\n\n'),
      /status 200, event 1 of \d+ is .* instead of /,
    ],
    ['65', (_, res) => res.writeHead(200).end(), /status 200/],
    ['105', (_, res) => res.writeHead(200).end(), /status 200/],
    ['107', (_, res) => res.writeHead(200).end(), /\/v1\/responses without a key: status 200/],
    ['108', (_, res) => res.writeHead(204).end(), /pass .* 204, 204/],
    ['109', (_, res) => res.writeHead(200).end(), /a key in the query alone: status 200/],
    ['109', (req, res) => res.writeHead(req.headers.authorization === undefined ? 401 : 500).end(), /fail .* status 500/],
    ['111', (_, res) => res.writeHead(500).end(), /\/V1\/chat\/completions: status 500/],
    [
      '112',
      (_, res) => res.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: {"choices":[]}\n\n'),
      /chat: a clean end after \{"choices":\[\]\}/,
    ],
    ['113', (_, res) => res.writeHead(200, { 'content-type': 'text/event-stream' }).end(''), /chat: status 200, the last event is/],
    [
      '114',
      (_, res) => res.writeHead(200, { 'content-type': 'text/event-stream' }).end('event: error\ndata: it broke\n\n'),
      /chat: error it broke/,
    ],
    [
      '114',
      (_, res) => res.writeHead(200, { 'content-type': 'text/event-stream' })
        .end('event: error\ndata: {"type":"error","error":{"message":"no"}}\n\n'),
      /messages: error /,
    ],
    [
      '114',
      (_, res) => res.writeHead(200, { 'content-type': 'text/event-stream' })
        .end('event: error\ndata: {"type":"error","message":"no","error":{"type":"t","message":"no","code":5,"status":"S"}}\n\n'),
      /gemini: error /,
    ],
    ['1', (req) => req.socket.destroy(), /socket hang up/],
    ['1', () => {}, /not done within 2000 ms/],
    ['40', (_, res) => res.end('tokens 1'), /instead of 100 \+ 40: nothing/],
  ]
  for (const [check, answer, seen] of rows) {
    const origin = await listening(t, createServer(answer))
    const port = await freePort()
    const { code, out } = await kit(
      '--base-url', origin, '--upstream-port', `${port}`, '--metrics-url', origin, ...plainKeys, '--key-spent', 's', '--check', check,
      '--timeout-ms', '2000'
    )
    t.match(out, seen, `check ${check}`)
    t.equal(code, /^ *\d+ {2}pass/.test(out) ? 0 : 1)
  }
})

t.test('an endpoint that a gateway has not is no failure of its checks, and none at all is', async (t) => {
  const port = await freePort()
  const { origin } = await startGateway(t, {}, `http://127.0.0.1:${port}`)
  /** Passes on to the gateway what `has` allows. */
  const partly = async (has: RegExp): Promise<string> => await listening(t, createServer((req, res) => {
    if (!has.test(String(req.url))) {
      res.writeHead(404).end('{}')
      return
    }
    const onward = request(origin + String(req.url), { method: req.method, headers: req.headers }, (reply) => {
      res.writeHead(Number(reply.statusCode), reply.headers)
      // From Node 24 on `pipeline` throws where the caller has left.
      if (res.destroyed) reply.destroy()
      else pipeline(reply, res, () => {})
    })
    pipeline(req, onward, () => {})
  }))
  const checks = ['1', '35', '37', '38', '57', '102'].flatMap((number) => ['--check', number])
  const given = [
    '--upstream-port', `${port}`, '--key-openai', keys.openai, '--key-anthropic', keys.anthropic, '--key-gemini', keys.gemini, ...checks,
  ]
  const some = await kit('--base-url', await partly(/chat|messages|generateContent|GenerateContent/), ...given)
  t.equal(some.code, 0, some.out)
  t.match(some.err, /^not there: responses, embeddings, images\n/)
  t.match(
    some.out,
    / 1 {2}pass[^]* 35 {2}n\/a .* needs responses, which is not there\n 37 {2}n\/a [^]* 38 {2}n\/a .* needs images[^]* 57 {2}n\/a [^]*102 {2}pass/
  )
  const noChat = await kit('--base-url', await partly(/responses/), ...given)
  t.match(noChat.out, / 1 {2}n\/a [^]*102 {2}n\/a .* needs chat/)
  const none = await kit('--base-url', await partly(/nothing/), ...given)
  t.match(none, { code: 1, out: /0 passed, 6 failed, 0 not applicable/ })
})

t.test('a gateway that accepts the upgrade', async (t) => {
  const server = createServer()
  server.on('upgrade', (_, socket) => socket.end('HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n'))
  const origin = await listening(t, server)
  t.match((await kit('--base-url', origin, ...plainKeys, '--check', '60')).out, /status 101 instead of 426/)
  t.match((await kit('--base-url', origin.replace('http', 'https'), '--check', '30')).out, /fail/, 'https speaks TLS')
})

t.test('results that cannot be written are an error of their own', async (t) => {
  const origin = await listening(t, createServer((_, res) => res.end()))
  const unwritten = await kit('--base-url', origin, '--check', '30', '--json', `${t.testdir({})}/none/results.json`)
  t.match(unwritten, { code: 1, err: /\nllm-gateway: ENOENT: .*results\.json/ })
  const taken = await kit('--base-url', origin, '--check', '30', '--upstream-port', new URL(origin).port)
  t.match(taken, { code: 1, err: /^llm-gateway: listen EADDRINUSE: / }, 'nor is a port that is taken a check that failed')
})

t.test('a gateway that gives up a body in the middle of it fails its check, and no other', async (t) => {
  const port = await freePort()
  const given: string[] = []
  const origin = await listening(t, createServer((req, res) => {
    given.push(String(req.url))
    const upstream = request({ port, host: '127.0.0.1', method: 'POST', path: req.url, headers: { 'content-length': 9 } })
    upstream.on('error', () => {})
    upstream.write('{', () => setTimeout(() => {
      upstream.destroy()
      res.writeHead(413).end()
    }, 50))
  }))
  const { code, out } = await kit('--base-url', origin, '--upstream-port', `${port}`, '--key-openai', 'k', '--check', '1', '--check', '2')
  t.equal(code, 1)
  t.match(out, / 1 {2}fail .*status 413 instead of 200[^]* 2 {2}fail .*status 413 instead of 200/)
})

t.test('what is asked of a gateway depends on what it is', async (t) => {
  const numbers = async (...args: string[]): Promise<number[]> => {
    const { out } = await kit('--base-url', 'http://127.0.0.1:1', ...args)
    return [...out.matchAll(/^ *(\d+) {2}(?:pass|fail|n\/a)/gm)].map(([, number]) => Number(number))
  }
  const [all, transparent, translating] = [await numbers('--profile', 'house'), await numbers(), await numbers('--profile', 'translating')]
  t.equal(all.length, 79)
  t.same(all.filter((number) => !transparent.includes(number)), [15, 28, 29, 60, 112].filter((number) => all.includes(number)))
  t.same(transparent.filter((number) => !translating.includes(number)).sort((a, b) => a - b), [13, 14, 17, 32, 38, 57, 58, 63, 101, 113])
  t.same(await numbers('--profile', 'translating', '--check', '15'), [15], 'one that is named is run')
})

t.test('token counters are found by what their names and labels say', async (t) => {
  const sums = tokenSums([
    '# HELP x_tokens_total Tokens',
    'x_tokens_total{kind="input",model="a b"} 5',
    'x_tokens_total{kind="output"} 7 1700000000',
    'x_tokens_bucket{le="1"} 9',
    'prompt_tokens_sum 3',
    'requests_total 4',
    'y_tokens_total{path="/v1/chat/completions",type="prompt"} 20',
    'y_tokens_total{path="/v1/chat/completions",type="completion"} 30',
  ].join('\n'))
  t.strictSame(Object.fromEntries(sums), {
    x_tokens_total: 12,
    'x_tokens_total input': 5,
    'x_tokens_total output': 7,
    prompt_tokens_sum: 3,
    'prompt_tokens_sum input': 3,
    y_tokens_total: 50,
    'y_tokens_total input': 20,
    'y_tokens_total output': 30,
  })
  const grown = growth(new Map([['x_tokens_total', 2]]), sums)
  t.ok(grewBy(grown, 4, 6), 'as one sum')
  t.ok(grewBy(grown, 5, 7), 'by direction')
  t.notOk(grewBy(grown, 5, 8))
  t.notOk(grewBy(grown, 6, 7))
})
