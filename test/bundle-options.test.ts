import Fastify from 'fastify'
import t from 'tap'
import llmGateway from '../plugins/index.js'

const own = { routes: false, groups: { chat: { protocols: ['chat_completions'] } }, keys: [{ id: 'a', group: 'chat', secret: 'key-a' }] }

t.test('a wrong option is told by the name that it has in the bundle', async (t) => {
  const cases: ReadonlyArray<readonly [options: object, told: string]> = [
    [{ prefix: 'llm' }, 'option prefix must be a path such as /llm'],
    [{ notes: new Map() }, 'option notes has no method read'],
    [{ health: 5 }, 'option health must be an object'],
    [{ upstreams: { notes: 5 } }, 'option upstreams.notes must be an object'],
    [{ upstreams: { health: 5 } }, 'option upstreams.health must be an object'],
    [{ prices: { model: {} } }, 'option prices.model is not known; did you mean models?'],
    [{ prices: { models: {} }, costs: { header: 'yes' } }, 'option costs.header must be a boolean'],
    [{ prices: { models: {} }, costs: { heder: true } }, 'option costs.heder is not known; did you mean header?'],
    [{ prices: { header: true } }, 'option prices.header stands outside of prices'],
    [{ paths: { prefix: '/llm' } }, 'option paths.prefix stands outside of paths'],
    [{ auth: { lookup: () => null } }, 'option auth.lookup stands outside of auth'],
    [{ forward: { routes: false } }, 'option forward.routes stands outside of forward'],
    [{ costs: { models: { m: { input: 1 } } } }, 'option costs.models is not known'],
    [{ costs: { header: 'yes' } }, 'option costs.header must be a boolean'],
    [{ costs: { header: true } }, 'option costs.header needs prices'],
    [{ prices: { models: {} }, costs: { header: true } }, 'option costs.header needs prices'],
    [{ usage: { includeusage: false } }, 'option usage.includeusage is not known; did you mean includeUsage?'],
    [{ routes: 'false' }, 'option llmGateway.routes must be a boolean'],
    [{ upstreams: { notes: { url: 'https://models.example', query: 1 } } }, 'option upstreams.notes.query must be an object'],
  ]
  for (const [options, told] of cases) {
    const app = Fastify()
    t.teardown(async () => await app.close())
    const registered = async (): Promise<unknown> => await app.register(llmGateway, Object({ ...own, ...options }))
    await t.rejects(registered, { code: 'LLM_GATEWAY_OPTION', message: told })
  }
})

t.test('options that only a mount of the host reads are warned of', async (t) => {
  const logged: string[] = []
  const warned = async (options: object): Promise<string[]> => {
    const stream = { write: (line: string): void => { logged.push(JSON.parse(line).msg) } }
    const app = Fastify({ logger: { level: 'warn', stream } })
    t.teardown(async () => await app.close())
    await app.register(llmGateway, Object({ ...own, ...options }))
    return logged.splice(0)
  }
  t.same(await warned({ forward: { headersTimeoutMs: 60_000 }, overload: { queueMs: 100, maxActive: 5 } }), [
    'with routes: false nothing reads headersTimeoutMs, queueMs: give them to proxyOptions() of your mount',
  ])
  t.same(await warned({ overload: { maxActive: 5 } }), [])
})
