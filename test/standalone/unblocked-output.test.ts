import { EventEmitter } from 'node:events'
import t from 'tap'
import { unblockOutput } from '../../plugins/standalone/workers/unblocked-output.js'

t.test('output that processes share waits for no reader once one of them began or ended', (t) => {
  const worker = new EventEmitter()
  const set: boolean[] = []
  unblockOutput(worker, { _handle: { setBlocking: (isBlocking: boolean) => set.push(isBlocking) } })
  t.strictSame(set, [false])
  worker.emit('exit')
  t.strictSame(set, [false, false])
  t.end()
})

t.test('a file, a terminal or nothing has no such state', (t) => {
  for (const output of [{}, { _handle: null }, { _handle: {} }]) t.doesNotThrow(() => unblockOutput(new EventEmitter(), output))
  t.end()
})
