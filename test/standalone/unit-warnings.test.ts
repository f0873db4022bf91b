import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import t from 'tap'
import { run } from '../../bin/cli.js'
import { unitWarnings } from '../../plugins/standalone/unit-warnings.js'
import { file, small } from '../bin/gateway-file.js'
import { terminal } from '../bin/terminal.js'

t.test('check and start warn of numbers that were probably meant in another unit', async (t) => {
  const config = file(t, `${small}
forward: { headersTimeoutMs: 60, keepAliveCommentMs: 0, drain: { maxMs: 0 } }
validation: { maxBodyBytes: 32, maxBodyBytesByEndpoint: { responses: 64, embeddings: 4096 } }
prices: { models: { cheap: { input: 0.0001, output: 0 }, one: [{ from: 2026-01-01, input: 0.00000125, tiers: { flex: 0.5 } }] } }
limits: { maxInputTokens: 200, maxOutputTokens: { m: 8 } }
`.replace('simulate: true', 'simulate: true, priceFactor: 0.1'))
  const warnings = [
    'upstreams.a.priceFactor: 0.1 is a factor of all prices: was a discount meant?',
    'forward.headersTimeoutMs: 60 is in milliseconds: were seconds meant?',
    'validation.maxBodyBytes: 32 is in bytes: were megabytes meant?',
    'validation.maxBodyBytesByEndpoint.responses: 64 is in bytes: were megabytes meant?',
    'prices.models.one[0].input: 0.00000125 is for a million tokens: is it the price of one?',
    'limits.maxInputTokens: 200 is in tokens: were thousands meant?',
    'limits.maxOutputTokens.m: 8 is in tokens: were thousands meant?',
  ]
  const io = terminal({ PORT: '0' })
  t.equal(await run(['check', '--config', config], io), 0, io.complaints.join())
  t.same(io.complaints, warnings.map((warning) => `${config}: warning: ${warning}`))

  const exit = run(['start', '--config', config], io)
  const logged: string[] = []
  while (logged.length < warnings.length) logged.push(JSON.parse(await io.logged.next()).msg)
  t.same(logged, warnings)
  await io.shown.next()
  await io.shown.next()
  io.send('SIGTERM')
  t.equal(await exit, 0)
})

t.test('a price list in another unit is told by its first prices', async (t) => {
  const models = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`m${index}`, { input: 0.000001, output: 0.000002 }]))
  const warnings = unitWarnings({ prices: { models } })
  t.equal(warnings.length, 21)
  t.match(warnings.at(0), /^prices\.models\.m0\.input: 0\.000001 is for a million tokens/)
  t.match(warnings.at(-1), /^further numbers as small: 580$/)
})

t.test('every time and size of the file has a least that is usual', async (t) => {
  const schema = readFileSync(createRequire(import.meta.url).resolve('fastify-llm-gateway/schemas/gateway.schema.json'), 'utf8')
  const names = new Set(Array.from(schema.matchAll(/"(\w+(?:Ms|Bytes))": \{/g), ([, name = '']) => name))
  t.ok(names.size > 20)
  const bare = [...names].filter((name) => unitWarnings({ [name]: 1 }).length === 0)
  // Small by nature, or bounded by the schema itself.
  t.same(bare, ['requestTimeoutMs', 'maxLoopDelayMs', 'commandTimeoutMs'])
})
