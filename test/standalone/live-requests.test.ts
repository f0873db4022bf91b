import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { createResolve } from '../../plugins/core/url/resolve.js'
import { ModelCall } from '../../plugins/core/call/model-call.js'
import { LiveRequests } from '../../plugins/standalone/live-requests.js'
import { start, yaml } from './run.js'

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
  const settled = newRequest()
  settled.settled = true
  live.add(settled)
  await Promise.all(waits)
  t.equal(idle, 2)
})

t.test('requests on connections that were reset before they were read keep no process from its end', async (t) => {
  const { gateway, origin } = await start(t, yaml('http://127.0.0.1:9', ['caller'], 'listen: { shutdownGraceMs: 600000 }'))
  const { port } = new URL(origin)
  const one = 'POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}'
  for (let i = 0; i < 40; i += 1) {
    const socket = connect(Number(port), '127.0.0.1')
    await once(socket, 'connect')
    socket.write(one.repeat(200))
    await pause(1)
    socket.resetAndDestroy()
  }
  t.equal((await fetch(`${origin}/health`)).status, 200)
  // It would wait for those that nobody takes out again.
  await gateway.stop()
})
