import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'

t.test('the table of clients in the README is what the suite of real clients found', async (t) => {
  await t.resolves(promisify(execFile)(process.execPath, ['test/sdk/readme-table.js', '--check']))
})
