import { readdirSync, readFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import httpProxy from '@fastify/http-proxy'
import Fastify from 'fastify'
import t from 'tap'
import { proxyOptions, validation } from '../../plugins/index.js'
import { giveWay } from '../../plugins/validation/give-way.js'
import { startUpstream } from '../helpers/upstream.js'

t.test('a thread gives way, the process does not', async (t) => {
  const asked: number[] = []
  const setPriority = (niceness: number): void => { asked.push(niceness) }
  const linux = { platform: 'linux', isMainThread: false, getPriority: () => 0, setPriority }
  giveWay(linux)
  t.strictSame(asked, [10])
  giveWay({ ...linux, isMainThread: true })
  giveWay({ ...linux, platform: 'darwin' })
  t.equal(asked.length, 1)
  giveWay({ ...linux, getPriority: () => 7 })
  giveWay({ ...linux, getPriority: () => 15 })
  t.strictSame(asked, [10, 17, 19], 'whatever its process has')
  t.doesNotThrow(() => giveWay({ ...linux, setPriority: () => { throw new Error('EPERM') } }))
})

/** Niceness of each thread of this process. */
function threads (): number[] {
  return readdirSync('/proc/self/task').map((thread) => {
    const told = readFileSync(`/proc/self/task/${thread}/stat`, 'utf8')
    return Number(told.slice(told.lastIndexOf(')') + 2).split(' ')[16])
  })
}

t.test('so does one that checks a large body', { skip: process.platform !== 'linux' }, async (t) => {
  const upstream = await startUpstream(t)
  upstream.respond = () => ({ body: {} })
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(validation)
  await app.register(httpProxy, { ...proxyOptions(), upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1' })
  const ask = async (length: number): Promise<number> => {
    const payload = { model: 'm', messages: [{ role: 'user', content: 'x'.repeat(length) }] }
    return (await app.inject({ method: 'POST', url: '/v1/chat/completions', payload })).statusCode
  }
  const own = getPriority()
  t.equal(await ask(10), 200)
  t.notOk(threads().some((niceness) => niceness > own))
  t.equal(await ask(1_000_000), 200)
  t.equal(threads().filter((niceness) => niceness > own).length, 1)
  t.equal(getPriority(), own)
})
