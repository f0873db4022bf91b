import { appendFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { run } from '../../bin/cli.js'
import { overview } from '../../bin/help.js'
import { freePort } from '../helpers/free-port.js'
import { file, small } from './gateway-file.js'
import { terminal, type Terminal } from './terminal.js'

const names = [...overview.matchAll(/^ {2}(\w+)/gm)].map(([, name]) => String(name))
const subs = ['keys create', 'keys list', 'keys update', 'keys rotate', 'keys revoke', 'usage reprice', 'prices show', 'prices check']

for (const words of [...names, ...subs].map((name) => name.split(' '))) {
  t.test(`the help of ${words.join(' ')} is its own, however it is asked for`, async (t) => {
    const io = terminal()
    const pages: string[] = []
    for (const args of [['help', ...words], [...words, '--help'], [...words, '-h'], [...words, '--config', 'a.yaml', '--help']]) {
      t.equal(await run(args, io), 0, args.join(' '))
      pages.push(await io.shown.next())
    }
    const [page = ''] = pages
    t.same(new Set(pages).size, 1)
    t.match(page, `Usage: llm-gateway ${words.join(' ')}`)
    t.notMatch(page, / #/)
    for (const other of names.filter((name) => name !== words[0])) t.notMatch(page, new RegExp(`llm-gateway ${other}\\b`))
    for (const other of subs.filter((name) => words.length > 1 && name !== words.join(' '))) t.notMatch(page, `llm-gateway ${other}`)
  })
}

t.test('the help of a sub-command has its options alone', async (t) => {
  const io = terminal()
  for (const [words, told, untold] of [
    ['keys create', ['--id', '--group', '--expires', '--balance', '--budget', '--json', '--config', 'A DATE'], ['--disable']],
    ['keys update', ['--disable', '--expires', '--group'], ['--id ID']],
    ['keys list', ['--group', '--json'], ['--expires', '--balance', '--disable', 'A DATE']],
    ['keys revoke', ['--json', '--config'], ['--group', '--expires']],
    ['prices show', ['--config'], ['--from', '--local', 'A DATE']],
    ['prices check', ['--from', '--local', 'A DATE'], []],
    ['usage reprice', ['--prices', '--by', 'A DATE'], ['usage [options]']],
  ] as const) {
    await run([...words.split(' '), '-h'], io)
    const page = await io.shown.next()
    for (const text of told) t.match(page, text, words)
    for (const text of untold) t.notMatch(page, text, words)
  }
  const wrong = terminal()
  t.equal(await run(['keys', 'list', '--expires', '1'], wrong), 2)
  t.match(wrong.complaints.join(), /Usage: llm-gateway keys list/)
})

t.test('help, and command lines that are wrong', async (t) => {
  const io = terminal()
  t.equal(await run(['--help'], io), 0)
  t.match(await io.shown.next(), /^Usage: llm-gateway COMMAND/)
  for (const args of [['help'], ['-h'], ['strat', '-h']]) {
    t.equal(await run(args, io), 0, args.join(' '))
    t.match(await io.shown.next(), /^Usage: llm-gateway COMMAND/)
  }
  for (const args of [['--version'], ['-v']]) {
    t.equal(await run(args, io), 0, args.join(' '))
    t.match(await io.shown.next(), /^\d+\.\d+\.\d+$/)
  }
  for (const [args, said] of [
    [[], /a command is required/],
    [['strat'], /there is no command strat; did you mean start\?/],
    [['--config', 'a.yaml', 'start'], /--config comes before the command: put the command first/],
    [['keys', 'create', '--group', 'a', '--balance', '5x'], /--balance must be a whole number of at least 0, not 5x/],
    [['constructor'], /there is no command constructor/],
    [['start', '--port', '1'], /Unknown option '--port'/],
    [['check', 'gateway.yaml'], /Unexpected argument 'gateway.yaml'/],
    [['check', '--config'], /'--config <value>' argument missing/],
    [['check', '--config', ''], /--config is empty: it needs the name of a file/],
    [['check', '--cofnig', 'a.yaml'], /^llm-gateway: Unknown option '--cofnig'; did you mean --config\?\n/],
    [['usage', '--form', '2027-01-01'], /^llm-gateway: Unknown option '--form'; did you mean --from\?\n/],
    [['usage', '--by', 'modle'], /--by must be group, .*, or several of them, not modle; did you mean model\?/],
    [['start', '-c', 'a.yaml'], /^llm-gateway: Unknown option '-c'/],
    [['doctor', 'gateway.yaml'], /^llm-gateway: Unexpected argument 'gateway.yaml'.*; did you mean --config gateway.yaml\?\n/],
    [['conformance', '--baseurl', 'http://a'], /^llm-gateway: Unknown option '--baseurl'; did you mean --base-url\?\n/],
    [['keys', 'lsit'], /keys takes create, list, update, rotate, revoke; did you mean list\?/],
    [['prices', 'chek'], /prices takes show or check; did you mean check\?/],
    [['upstreams', '--url', 'localhost:9091'], /--url must be an address such as http:/],
    [['upstreams', '--url', '127.0.0.1:9091'], /--url must be an address such as http:/],
  ] as const) {
    const wrong = terminal()
    t.equal(await run(args, wrong), 2, args.join(' '))
    t.match(wrong.complaints.join('\n'), said)
    t.match(wrong.complaints.join('\n'), /Usage: /)
  }
  const wrong = terminal()
  await run(['check', '--cfg', 'x'], wrong)
  t.match(wrong.complaints.join('\n'), /Usage: llm-gateway check /, 'its own help, not the whole page')
})

t.test('a start that an option of a part fails names the line, too', async (t) => {
  const io = terminal({ PORT: '0' })
  t.equal(await run(['start', '--config', file(t, `${small}\nvalidation: { schemas: { chat: ./nowhere.json } }`)], io), 1)
  t.match(io.complaints, [/gateway\.yaml:4: validation\.schemas\.chat: /])
})

t.test('start greets, reloads and ends by signals', async (t) => {
  const path = file(t, small)
  const io = terminal({ PORT: '0' })
  const exit = run(['start', '--config', path], io)
  const origin = /^llm-gateway listens on (http:.*)$/.exec(await io.shown.next())?.[1] ?? ''
  t.equal(await io.shown.next(), `metrics: ${origin}/metrics`)
  t.equal(await io.shown.next(), '')
  t.match(await io.shown.next(), `curl '${origin}/v1/messages' -H 'x-api-key: YOUR_KEY'`)
  t.equal((await fetch(`${origin}/health`)).status, 200)

  t.match(await io.logged.next(), 'state.engine is memory')
  io.send('SIGHUP')
  t.match(await io.logged.next(), 'configuration reloaded')
  writeFileSync(path, `${small}\nmetrics: 1`)
  t.match(await io.logged.next(), 'metrics: must be object', 'a changed file is read without being told')

  io.send('SIGTERM')
  io.send('SIGTERM')
  t.same(io.exits, [130], 'the second one')
  t.match(await io.shown.next(), /^stopping/)
  t.equal(await exit, 0)
  await t.rejects(fetch(`${origin}/health`))
})

t.test('a signal to reload, and a change of the file, while the gateway starts are taken once it is there', async (t) => {
  const reloads = async (io: Terminal): Promise<void> => {
    for (;;) if (/configuration reloaded/.test(await io.logged.next())) return
  }
  const list = 'currency: USD\nmodels: {}\n'
  for (const [how, meanwhile] of [
    ['signal', (io: Terminal) => io.send('SIGHUP')],
    ['change', (_io: Terminal, path: string) => appendFileSync(path, '\nauth: { conflict: reject }')],
    ['change of its price list', (_io: Terminal, path: string) => writeFileSync(join(dirname(path), 'prices.yaml'), `${list}#`)],
  ] as const) {
    const path = file(t, `${small}\nmetrics: { path: "\${WHERE}" }\nprices: { files: [prices.yaml] }`)
    writeFileSync(join(dirname(path), 'prices.yaml'), list)
    const io = terminal()
    // Asked for as often as the file is read: by the command, and by the gateway when it starts.
    let read = 0
    const env = {
      PORT: '0',
      get WHERE () {
        read += 1
        if (read === 2) queueMicrotask(() => meanwhile(io, path))
        return '/internal'
      },
    }
    const exit = run(['start', '--config', path], { ...io, env })
    await io.shown.next()
    await reloads(io)
    t.pass(how)
    io.send('SIGTERM')
    t.equal(await exit, 0)
  }
})

t.test('a signal to end while the gateway starts is taken once it is there, and none keeps a start from failing', async (t) => {
  const signalled = async (io: Terminal, text: string): Promise<number> => {
    const onSignal: Terminal['onSignal'] = (name, listener) => {
      io.onSignal(name, listener)
      // The last one that it listens for: nothing has started by then.
      if (name === 'SIGINT') for (const signal of ['SIGHUP', 'SIGTERM'] as const) io.send(signal)
    }
    return await run(['start', '--config', file(t, text)], { ...io, onSignal })
  }
  const io = terminal({ PORT: '0' })
  t.equal(await signalled(io, small), 0)
  t.match(await io.shown.next(), /^stopping/)
  t.match(await io.shown.next(), /^llm-gateway listens on/)
  t.equal(await signalled(terminal({ PORT: '0' }), `${small}\nvalidation: { schemas: { chat: ./nowhere.json } }`), 1)
})

t.test('the path of the metrics is the one of the file', async (t) => {
  const io = terminal({ PORT: '0' })
  const exit = run(['start', '--config', file(t, `${small}\nmetrics: { path: /internal }`)], io)
  await io.shown.next()
  t.match(await io.shown.next(), /\/internal$/)
  io.send('SIGINT')
  t.equal(await exit, 0)
})

t.test('the console is told where there is one', async (t) => {
  for (const [more, told] of [
    ['path: /live', /^console: http:.*\/live$/], ['listen: { port: 0 }', /^console: http:\/\/127\.0\.0\.1:\d+$/],
  ] as const) {
    const io = terminal({ PORT: '0' })
    const exit = run(['start', '--config', file(t, `${small}\nconsole: { ${more} }`)], io)
    await io.shown.next()
    await io.shown.next()
    t.match(await io.shown.next(), told)
    io.send('SIGTERM')
    t.equal(await exit, 0)
  }
})

t.test('a start that fails says why and ends with 1', async (t) => {
  const io = terminal({ PORT: 'x' })
  t.equal(await run(['start'], io), 1)
  t.match(io.complaints.join('\n'), /environment variable PORT is not a port number/)
})

t.test('conformance needs no configuration', async (t) => {
  const io = terminal()
  t.equal(await run(['conformance', '--base-url', `http://127.0.0.1:${await freePort()}`, '--check', '1', '--key-openai', 'k'], io), 1)
})
