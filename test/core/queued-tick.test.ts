import { executionAsyncResource } from 'node:async_hooks'
import { setFlagsFromString } from 'node:v8'
import { compileFunction, runInNewContext } from 'node:vm'
import fastify from 'fastify'
import t from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import { paths } from '../../plugins/index.js'

setFlagsFromString('--allow-natives-syntax')
setFlagsFromString('--expose-gc')
const haveSameForm = compileFunction('return %HaveSameMap(a, b)', ['a', 'b'])

async function tick (): Promise<object> {
  return await new Promise((resolve) => process.nextTick(() => resolve(executionAsyncResource())))
}

t.test('what Node queues for the next tick keeps its form through a collection, for as long as a gateway lives', async (t) => {
  const app = fastify()
  await app.register(paths)
  const kept = await gatewayOf(app).queuedTick
  t.notOk(haveSameForm(kept, {}), 'which is not that of any object')
  for (let ticks = 0; ticks < 100; ticks++) await tick()
  runInNewContext('gc')()
  t.ok(haveSameForm(kept, await tick()))
  await app.close()
})
