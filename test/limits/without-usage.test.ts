import Fastify from 'fastify'
import t from 'tap'
import { auth, limits, usage } from '../../plugins/index.js'

t.test('limits that nobody tells what replies used say so at the start', async (t) => {
  const warnings = async (plugins: ReadonlyArray<typeof usage>): Promise<string[]> => {
    const logged: string[] = []
    const stream = { write: (line: string): void => { logged.push(JSON.parse(line).msg) } }
    const app = Fastify({ logger: { level: 'warn', stream } })
    t.teardown(async () => await app.close())
    await app.register(auth, { groups: { chat: { protocols: ['messages'] } }, keys: [{ id: 'a', group: 'chat', secret: 'key-a' }] })
    await app.register(limits)
    for (const plugin of plugins) await app.register(plugin)
    await app.ready()
    return logged
  }
  t.match(await warnings([]), [/^usage is not registered: limits charges estimates/])
  t.strictSame(await warnings([usage]), [])
})
