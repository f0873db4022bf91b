import t from 'tap'
import { createResolve } from '../../plugins/core/url/resolve.js'
import { ModelCall } from '../../plugins/core/model-call.js'
import { LiveRequests } from '../../plugins/standalone/live-requests.js'

function newRequest (): ModelCall {
  const resolution = createResolve('')('POST', '/v1/messages', {})
  if (resolution?.kind !== 'endpoint') throw new Error('not an endpoint')
  return new ModelCall(resolution)
}

t.test('what is cut was not ended by its caller, unless it has left before', async (t) => {
  const live = new LiveRequests()
  const [running, left] = [newRequest(), newRequest()]
  live.add(running)
  live.add(left)
  left.abortedBy = 'client'
  live.cut()
  t.same([running.abortedBy, left.abortedBy], ['gateway', 'client'])
})

t.test('idle when the last one is settled, and at once where there is none', async (t) => {
  const live = new LiveRequests()
  await live.idle()
  const [one, two] = [newRequest(), newRequest()]
  live.add(one)
  live.add(one)
  live.add(two)
  let idle = 0
  const waits = [live.idle(), live.idle()].map(async (wait) => await wait.then(() => { idle += 1 }))
  live.delete(one)
  await new Promise(setImmediate)
  t.equal(idle, 0)
  live.delete(two)
  live.delete(two)
  await Promise.all(waits)
  t.equal(idle, 2)
})
