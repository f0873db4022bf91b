import { Writable } from 'node:stream'
import t, { type Test } from 'tap'
import { LogOutput } from '../../plugins/standalone/log-output.js'
import { wholeLines } from '../../plugins/standalone/whole-lines.js'

/** An output that is slow, and puts together what waits for it, as a pipe does. */
function slowOutput (t: Test): { readonly out: Writable, readonly writes: Buffer[] } {
  const writes: Buffer[] = []
  const out = new Writable({
    write (chunk, _, done) {
      writes.push(chunk)
      setImmediate(done)
    },
    writev () { t.fail('two writes would be one') },
  })
  return { out, writes }
}

t.test('lines of an output that others write to go out whole, as many at once as a pipe takes whole', async (t) => {
  const { out, writes } = slowOutput(t)
  const log = new LogOutput(() => wholeLines(out))
  const sizes = [700, 1, 4_050, 700, 3_300, 9_000, ...Array<number>(100).fill(650)]
  const lines = sizes.map((size, i) => `{"level":30,"i":${i},"msg":"\u00e9${'x'.repeat(size)}"}\n`)
  for (const line of lines) log.write(line)
  t.equal(await log.flush(5_000), true)
  t.equal(Buffer.concat(writes).toString(), lines.join(''))
  for (const write of writes) {
    t.equal(write.at(-1), 0x0a)
    t.ok(write.length <= 4_096 || write.indexOf(0x0a) === write.length - 1, 'more only of a line that is longer')
  }
  t.ok(writes.length < 25, 'and not each by itself')
})

t.test('what has no end of a line goes out as it is', async (t) => {
  const { out, writes } = slowOutput(t)
  await new Promise<void>((resolve) => wholeLines(out).end('x'.repeat(5_000), () => resolve()))
  t.same(writes.map(({ length }) => length), [5_000])
})

t.test('an output that fails fails', async (t) => {
  const out = new Writable({ write (_chunk, _encoding, done) { done(new Error('gone')) } }).on('error', () => {})
  const failed = new Promise((resolve) => wholeLines(out).on('error', resolve).write('lost\n'))
  t.match(await failed, { message: 'gone' })
})
