import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { launch, until } from '../helpers/launch.js'
import { startUpstream, type Upstream } from '../helpers/upstream.js'
import { chat, status } from '../standalone/run.js'

const folder = new URL('../../examples/existing-gateway/', import.meta.url)

function lines (name: string): string[] {
  return readFileSync(new URL(name, folder), 'utf8').split('\n')
}

async function start (t: Test, script: string): Promise<{ upstream: Upstream, origin: string }> {
  const upstream = await startUpstream(t)
  const env = { UPSTREAM_URL: upstream.url, UPSTREAM_KEY: 'provider-key', GATEWAY_KEY: 'my-key', PORT: '0' }
  const child = launch(t, new URL(script, folder).pathname, [], env)
  const [, origin = ''] = await until(child.out, /^listening on (.*)$/)
  return { upstream, origin }
}

t.test('the diff of the README makes one file of the other, in six lines', async (t) => {
  const readme = lines('README.md')
  const from = readme.indexOf('```diff') + 1
  const diff = readme.slice(from, readme.indexOf('```', from))
  const side = (mark: string): string[] => diff.filter((line) => line[0] === ' ' || line[0] === mark).map((line) => line.slice(1))
  const holds = (text: readonly string[], part: readonly string[]): boolean => text.join('\n').includes(part.join('\n'))
  t.ok(holds(lines('before.js'), side('-')), 'before')
  t.ok(holds(lines('after.js'), side('+')), 'after')
  t.equal(
    lines('before.js').join('\n').replace(side('-').join('\n'), side('+').join('\n')), lines('after.js').join('\n'), 'nothing else differs'
  )
  t.equal(diff.filter((line) => line[0] === '+').length, 6)
  t.equal(diff.filter((line) => line[0] === '-').length, 0)
})

t.test('before, everything goes to the provider', async (t) => {
  const { upstream, origin } = await start(t, 'before.js')
  t.equal(await status(origin, 'nobody'), 200)
  t.equal(await status(`${origin}/v1`, 'nobody'), 404, 'the doubled version went upstream')
  t.equal(upstream.seen.length, 2)
})

t.test('after, callers are known, paths repaired, tokens counted', async (t) => {
  const { upstream, origin } = await start(t, 'after.js')
  t.equal(await status(origin, 'nobody'), 401)
  const wrong = await chat(origin, 'my-key', { model: undefined })
  t.equal(wrong.status, 400)
  t.match(await wrong.json(), { error: { param: 'model' } })
  t.equal((await fetch(`${origin}/v1/files`)).status, 404)
  t.equal((await fetch(`${origin}/v1/chat/completions?key=my-key`, { method: 'POST', body: '{}' })).status, 400)
  t.equal(upstream.seen.length, 0, 'nothing went upstream')

  t.equal(await status(origin, 'my-key'), 200)
  t.equal(await status(`${origin}/v1`, 'my-key'), 200, 'the doubled version was repaired')
  for (const { url, headers } of upstream.seen) {
    t.equal(url, '/v1/chat/completions')
    t.equal(headers.authorization, 'Bearer provider-key')
  }

  const stream = await chat(origin, 'my-key', { stream: true })
  t.match(await stream.text(), /\[DONE\]\n\n$/)
  const counted = [...(await (await fetch(`${origin}/metrics`)).text()).matchAll(/^llm_gateway_tokens_total\{.*\} (\d+)$/gm)]
  const sum = counted.reduce((total, [, count]) => total + Number(count), 0)
  const sent = Object.values(upstream.totals['chat_completions'] ?? {}).reduce((total, count) => total + count, 0)
  t.equal(sum, sent)
  t.ok(sum > 0)
})

t.test('in CommonJS, without `await`, it is the same', async (t) => {
  const script = lines('after.js').join('\n')
    .replace(/^import llmGateway, \{ (.*) \} from (.*)$/m, 'const { default: llmGateway, $1 } = require($2)')
    .replace(/^import (\w+) from (.*)$/gm, 'const $1 = require($2)')
    .replace('await app.register', 'app.register')
    .replace(/^console\.log.*$/m, "app.listen({ port: 0 }).then((at) => console.log('listening on ' + at))")
  t.notMatch(script, /\b(?:import|await)\b/)
  const { upstream, origin } = await start(t, `${t.testdir({ 'after.cjs': script })}/after.cjs`)
  t.equal(await status(origin, 'nobody'), 401)
  t.equal(await status(`${origin}/v1`, 'my-key'), 200)
  t.equal(upstream.seen.length, 1)
})
