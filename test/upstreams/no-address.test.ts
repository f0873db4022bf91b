/** Members whose address needs a model, and requests that have none for it. */
import { join } from 'node:path'
import t from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import { secret } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { ask, inOrder, seenBy, startPool } from './pool-gateway.js'

t.test('half a character for a model has no address: it is no model, and nobody is blamed', async (t) => {
  const other = await startUpstream(t)
  const file = join(t.testdir({ token: 'of-a-file' }), 'token')
  const notes = { read: async () => null, write: async () => {} }
  const byModel = (name: string): object => ({ url: `${other.url}/${name}/deployments/{model}`, path: 'verbatim', credential: { file } })
  const gateway = await startPool(t, {
    upstreams: ['east', 'west'].map(byModel),
    gateway: { notes },
  })
  for (const [url, body] of [
    ['/v1/responses', '{"model":"\\ud800","previous_response_id":"resp_1","input":"hi"}'],
    ['/v1/responses', '{"model":"\\ud800","input":"hi"}'],
    ['/v1/chat/completions', '{"model":"m\\udfff","messages":[{"role":"user","content":"hi"}]}'],
  ] as const) {
    t.match(await ask(gateway, body, {}, url), { status: 404, body: /"code":"model_not_found"/ })
  }
  const { upstreams } = gatewayOf(gateway.app).upstreamsStatus()
  t.match(upstreams, [{ state: 'up', active: 0 }, { state: 'up', active: 0 }])
  t.equal(other.seen.length, 0)
  await ask(gateway)
  t.equal(other.seen.length, 1, 'it goes on')
})

t.test('a request without a model passes by a member whose address needs one', async (t) => {
  const byModel = await startUpstream(t)
  const gateway = await startPool(t, { upstreams: [{ url: `${byModel.url}/deployments/{model}`, path: 'verbatim' }], rules: inOrder })
  const get = async (url: string): Promise<number> => {
    const { statusCode } = await gateway.app.inject({ method: 'GET', url, headers: { authorization: `Bearer ${secret}` } })
    return statusCode
  }
  for (const url of ['/v1/models', '/v1/responses/resp_1', '/v1/models']) t.equal(await get(url), 200, url)
  t.strictSame([byModel.seen.length, ...seenBy(gateway)], [0, 0, 3])
  const metrics = String((await gateway.app.inject('/metrics')).body)
  t.match(metrics, /upstream_attempts_total\{upstream="m1",result="ok"\} 3/)
  t.match(metrics, /upstream_attempts_total\{upstream="m0",result="ok"\} 0/)
  t.notMatch(metrics, /failovers_total\{[^}]*\} [1-9]/, 'that is no failure of it')

  const alone = await startPool(t, { members: 1, upstreams: [{ url: `${byModel.url}/deployments/{model}`, path: 'verbatim' }] })
  t.match(await alone.app.inject({ method: 'GET', url: '/v1/models', headers: { authorization: `Bearer ${secret}` } }), {
    statusCode: 400, body: /"code":"model_required"/,
  })
})

t.test('a stored response that the others have not is missing, whichever member has no address for it', async (t) => {
  const byModel = { url: 'http://127.0.0.1:9/deployments/{model}', path: 'verbatim' } as const
  for (const upstreams of [[byModel], [{}, byModel]]) {
    const gateway = await startPool(t, { upstreams, rules: inOrder })
    for (const member of gateway.members) member.respond = () => ({ status: 404, body: { error: { code: 'not_here' } } })
    t.match(await gateway.app.inject({ url: '/v1/responses/resp_1', headers: { authorization: `Bearer ${secret}` } }), {
      statusCode: 404, body: /not_here/,
    })
  }
})
