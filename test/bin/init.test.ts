import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parseDocument } from 'yaml'
import { run } from '../../bin/cli.js'
import { providers } from '../../plugins/protocols/providers.js'
import { digestOf } from '../../plugins/auth/keys.js'
import { parseConfig } from '../../plugins/standalone/config.js'
import { firstConfig } from '../../plugins/standalone/first-config.js'
import { terminal } from './terminal.js'

t.test('whatever variables are set, what is written is right as it stands', async (t) => {
  const names = providers.flatMap(({ variables }) => variables)
  for (let set = 0; set < 2 ** names.length; set++) {
    const env = Object.fromEntries(names.filter((_, i) => (set >> i) % 2 === 1).map((name) => [name, `secret-of-${name}`]))
    for (const engine of ['lmdb', 'memory'] as const) {
      const text = firstConfig({ env, schema: './schema.json', digest: 'a'.repeat(64), engine })
      const config = parseConfig(text, env)
      const wanted = providers.filter(({ variables }) => variables.some((name) => env[name] !== undefined))
      t.same(Object.keys(config.upstreams), wanted.length === 0 ? ['simulated'] : wanted.map(({ name }) => name))
      t.notMatch(text, /secret-of/, 'variables by name alone')
      t.same(parseDocument(text.replace(/^ {2}# (?=\w+: \{)/gm, '  ')).errors, [], 'for editors, too, whatever is taken out of its comment')
      t.equal(config.state?.engine, engine)
      t.ok(config.groups['everyone']?.protocols.length)
    }
  }
})

t.test('init writes where the other commands read', async (t) => {
  const folder = t.testdir({})
  const [named, other] = [join(folder, 'named.yaml'), join(folder, 'other.yaml')]
  t.chdir(folder)
  for (const [args, LLM_GATEWAY_CONFIG, file] of [
    [[], named, named], [['--config', other], named, other], [[], '', 'gateway.yaml'],
  ] as const) {
    const io = terminal({ LLM_GATEWAY_CONFIG })
    t.equal(await run(['init', ...args], io), 0, io.complaints.join())
    t.match(io.complaints, [`${file} is written`, /not shown again/])
    t.match(readFileSync(file, 'utf8'), 'groups:')
  }
  const io = terminal()
  t.equal(await run(['init', '--config', "a b's.yaml"], io), 0)
  t.match(io.complaints, ['llm-gateway start --config \'a b\'\\\'\'s.yaml\''])
})

t.test('the schema is named by the link of the folder, where there is one', async (t) => {
  const folder = t.testdir({ node_modules: { 'fastify-llm-gateway': { schemas: { 'gateway.schema.json': '{}' } } } })
  const file = join(folder, 'gateway.yaml')
  t.equal(await run(['init', '--config', file], terminal()), 0)
  t.match(readFileSync(file, 'utf8'), /^# .*=\.\/node_modules\/fastify-llm-gateway\/schemas\/gateway\.schema\.json\n/)
})

t.test('init writes a file that starts and whose key is let in, and leaves one that is there', async (t) => {
  const file = join(t.testdir({}), 'gateway.yaml')
  const io = terminal()
  t.equal(await run(['init', '--config', file], io), 0, io.complaints.join())
  const secret = await io.shown.next()
  const text = readFileSync(file, 'utf8')
  t.notMatch(text, secret)
  t.match(text, digestOf(secret))
  t.match(text, /^# yaml-language-server: \$schema=\.\.?\/.*schemas\/gateway\.schema\.json\n/)
  t.match(io.complaints, [/is written.*doctor.*start/, /not shown again/])

  writeFileSync(file, text.replace('engine: lmdb, path: ./data', 'engine: memory'))
  const gateway = terminal({ PORT: '0' })
  const exit = run(['start', '--config', file], gateway)
  const origin = /(http:.*)$/.exec(await gateway.shown.next())?.[1] ?? ''
  const reply = await fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
  })
  t.equal(reply.status, 200, await reply.text())
  gateway.send('SIGTERM')
  t.equal(await exit, 0)

  const again = terminal()
  t.equal(await run(['init', '--config', file], again), 1)
  t.match(again.complaints, [/already exists and was not changed/])
  const nowhere = terminal()
  t.equal(await run(['init', '--config', join(file, 'below', 'gateway.yaml')], nowhere), 1)
  t.match(nowhere.complaints, [/cannot be written \(E\w+\)/])
})
