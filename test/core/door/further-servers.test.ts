import { EventEmitter } from 'node:events'
import Fastify from 'fastify'
import t from 'tap'
import { furtherServers } from '../../../plugins/core/door/further-servers.js'
import { listenAtTwo } from '../../helpers/two-addresses.js'

t.test('the servers beside the one that an app tells of are known, from a scope of it, too', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  const scopes: object[] = [app]
  await app.register(async (scope) => { scopes.push(scope) })
  await listenAtTwo(t, app)
  for (const scope of scopes) {
    const [further, ...more] = furtherServers(scope)
    t.ok(further instanceof EventEmitter && further !== app.server)
    t.strictSame(more, [])
  }
})

t.test('a server that has no such list has no further servers', async (t) => {
  t.strictSame(furtherServers({}), [])
})
