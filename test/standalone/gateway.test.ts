import t from 'tap'
import { parseConfig } from '../../plugins/standalone/config.js'
import { createGateway } from '../../plugins/standalone/gateway.js'

t.test('a request in a log line is its method and path, without the query', async (t) => {
  const lines: string[] = []
  const config = parseConfig('upstreams: { a: { simulate: true } }\ngroups: { a: { protocols: [messages] } }', {})
  const { app } = await createGateway(config, { simulator: null, cells: {}, life: { draining: false }, logStream: { write: (line) => { lines.push(line) } } })
  t.teardown(async () => await app.close())
  app.log.info({ req: { method: 'GET', url: '/a?key=c4nary', headers: { authorization: 'Bearer c4nary' } } })
  t.match(JSON.parse(lines.join('')), { req: { method: 'GET', url: '/a' } })
  t.notMatch(lines.join(''), 'c4nary')
})
