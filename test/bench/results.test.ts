import { readFileSync } from 'node:fs'
import t from 'tap'

function measured (path: string): string {
  const text = readFileSync(new URL(path, import.meta.url), 'utf8')
  return /<!-- performance:start -->\n([\s\S]*?)<!-- performance:end -->/.exec(text)?.[1] ?? path
}

t.test('the numbers of the papers are those of the recorded run', async t => {
  t.equal(measured('../../docs/performance.md'), measured('./RESULTS.md'))
})
