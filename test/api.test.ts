import { readFileSync } from 'node:fs'
import t from 'tap'
import { apiReport } from './scripts/api-report.js'

t.test('the public surface is the one in docs/api.md: after a change on purpose, npm run api', async (t) => {
  t.equal(apiReport(), readFileSync(new URL('../docs/api.md', import.meta.url), 'utf8'))
})
