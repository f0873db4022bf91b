import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'

t.test('the table of clients of the papers is what the suite of real clients found', async (t) => {
  await t.resolves(promisify(execFile)(process.execPath, ['test/sdk/clients-table.js', '--check']))
})
