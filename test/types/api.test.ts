import { readFileSync } from 'node:fs'
import t from 'tap'
import * as shown from '../../plugins/index.js'
import { apiReport } from '../scripts/api-report.js'

t.test('the public surface is the one in docs/api.md: after a change on purpose, npm run api', async (t) => {
  t.equal(apiReport(), readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8'))
})

t.test('each plugin stands under one name, and registers into the scope of who asks', async (t) => {
  const values: unknown[] = Object.values(shown)
  t.equal(new Set(values).size, values.length)
  const { default: gateway, createRewriteUrl, proxyOptions, ...plugins } = shown
  for (const [name, plugin] of Object.entries({ gateway, ...plugins })) {
    t.equal(Reflect.get(plugin, Symbol.for('skip-override')), true, name)
  }
})
