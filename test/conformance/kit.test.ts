import { readFile } from 'node:fs/promises'
import t from 'tap'
import { run } from '../../bin/conformance/index.js'
import { keys, startGateway } from './gateway.js'
import { freePort } from '../helpers/free-port.js'

interface Outcome {
  code: number
  out: string
  err: string
}

async function kit (...args: string[]): Promise<Outcome> {
  const [out, err]: string[][] = [[], []]
  const code = await run(args, { out: (line) => out?.push(line), err: (line) => err?.push(line) })
  return { code, out: (out ?? []).join('\n'), err: (err ?? []).join('\n') }
}

const plainKeys = ['--key-openai', 'k1', '--key-anthropic', 'k2', '--key-gemini', 'k3']

// The kit's own provider in the place of a gateway: whatever needs a gateway has to fail there.
t.test('a gateway that does nothing fails what a gateway is for', async (t) => {
  const port = await freePort()
  const file = t.testdir({}) + '/results.json'
  const address = `http://127.0.0.1:${port}`
  const { code, out, err } = await kit('--base-url', address, '--upstream-port', `${port}`, ...plainKeys, '--json', file)
  t.equal(code, 1)
  const { counts, results } = JSON.parse(await readFile(file, 'utf8'))
  const failed = results.filter(({ verdict }: { verdict: string }) => verdict === 'fail').map(({ number }: { number: number }) => number)
  t.strictSame(failed, [2, 3, 4, 6, 7, 9, 10, 12, 15, 22, 24, 26, 27, 28, 29, 33, 39, 60, 62, 64, 103, 104, 105])
  t.match(out, new RegExp(`${counts.pass} passed, ${failed.length} failed, ${counts['n/a']} not applicable`))
  t.match(out, / 16 {2}n\/a .* needs a path in --base-url/)
  t.match(err, /^\[1\/70\] 1 pass/)
})

t.test('a wrong command line', async (t) => {
  const rows: Array<[args: string[], said: RegExp]> = [
    [[], /--base-url must be an http/],
    [['--base-url', 'ftp://x'], /--base-url must be an http/],
    [['--base-url', 'http://x', '--upstream-port', '70000'], /--upstream-port must be a whole number up to 65535/],
    [['--base-url', 'http://x', '--metrics-url', 'x'], /--metrics-url must be an http/],
    [['--base-url', 'http://x', '--check', '999'], /names no check/],
    [['--nonsense'], /nonsense/],
  ]
  for (const [args, said] of rows) t.match(await kit(...args), { code: 2, err: said }, args.join(' '))
  t.match(await kit('--help'), { code: 0, out: /--key-anthropic/ })
})

t.test('one check, and a gateway that is not there', async (t) => {
  const nobody = `http://127.0.0.1:${await freePort()}/`
  t.match(await kit('--base-url', nobody, '--check', '1', '--check', '5', '--key-openai', 'k'), { code: 1, out: /1 {2}fail .*ECONNREFUSED[^]* 5 {2}n\/a/ })
})

t.test('our own gateway fails nothing', async (t) => {
  const port = await freePort()
  const { origin } = await startGateway(t, { prefix: '/pre' }, `http://127.0.0.1:${port}`)
  const { code, out } = await kit(
    '--base-url', `${origin}/pre/`, '--upstream-port', `${port}`, '--metrics-url', `${origin}/metrics`,
    '--key-openai', keys.openai, '--key-anthropic', keys.anthropic, '--key-gemini', keys.gemini, '--key-spent', keys.spent)
  t.equal(code, 0, out)
  t.match(out, /70 passed, 0 failed, 0 not applicable/)
})
