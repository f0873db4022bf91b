import { AsyncLocalStorage, executionAsyncResource } from 'node:async_hooks'
import { setImmediate } from 'node:timers/promises'
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

t.test('an app does not keep the asynchronous context that its plugins were registered in, such as the span of a start', async (t) => {
  const app = fastify()
  const context = new AsyncLocalStorage<object>()
  const span = new WeakRef({})
  await context.run(span.deref() ?? {}, async () => await app.register(paths).ready())
  await setImmediate()
  runInNewContext('gc')()
  t.equal(span.deref(), undefined)
  await app.close()
})
