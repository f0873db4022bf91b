import { spawnSync } from 'node:child_process'
import t from 'tap'
import { inlineMore, inlining } from '../../bin/inline-more.js'
import { cleanly } from '../helpers/launch.js'

t.test('the options by which V8 compiles more into one function are known to it', async (t) => {
  const started = (flags: readonly string[]): number | null => spawnSync(...cleanly(process.execPath, [...flags, '-e', '0'])).status
  t.equal(started(inlining), 0)
  t.not(started([...inlining, '--max-inlined-bytecode']), 0, 'what it does not know is told')
  inlineMore()
})
