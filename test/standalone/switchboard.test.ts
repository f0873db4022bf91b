import Fastify from 'fastify'
import t from 'tap'
import { LiveRequests } from '../../plugins/standalone/live-requests.js'
import { Switchboard } from '../../plugins/standalone/switchboard.js'

t.test('an app that cannot be closed is told, and ends nothing else', async (t) => {
  const first = { app: Fastify(), live: new LiveRequests(), retire () {} }
  const second = { app: Fastify(), live: new LiveRequests(), retire () {} }
  const third = { app: Fastify(), live: new LiveRequests(), retire () {} }
  first.live.idle = async () => { throw new Error('not idle') }
  for (const { app } of [first, second, third]) await app.ready()
  const board = new Switchboard(first)
  const told = await new Promise((resolve) => board.replace(second, resolve))
  t.match(told, { message: 'not idle' })
  board.replace(third, (error) => t.fail(String(error)))
  t.equal(board.app, third.app)
  await board.close()
  await first.app.close()
})
