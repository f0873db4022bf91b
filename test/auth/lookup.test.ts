import t from 'tap'
import { secret, startGateway } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'

t.test('a key that a host looked up brings its labels', async (t) => {
  const upstream = await startUpstream(t)
  const lookup = async (credential: string) => credential === secret ? { id: 'a', group: 'all', labels: { team: 'search' } } : null
  const { app, settled } = await startGateway(t, upstream.url, {
    groups: { all: { protocols: ['messages'], upstream: 'main' } }, keys: [], lookup,
  })
  const headers = { 'x-api-key': secret, 'anthropic-version': '2023-06-01', 'content-type': 'application/json' }
  const payload = { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'Hi' }] }
  t.equal((await app.inject({ method: 'POST', url: '/v1/messages', headers, payload })).statusCode, 200)
  t.strictSame((await settled.next()).auth.key?.labels, { team: 'search' })
})
