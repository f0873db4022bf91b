import Fastify from 'fastify'
import t from 'tap'
import llmGateway from '../../../plugins/index.js'
import { gatewayOptions, secret } from '../../helpers/gateway.js'

t.test('a 404 names the base address as its caller reached it, prefix included', async (t) => {
  const app = Fastify({ trustProxy: '127.0.0.1' })
  t.teardown(() => app.close())
  await app.register(llmGateway, gatewayOptions('http://127.0.0.1:1', { prefix: '/llm' }))
  const cases: ReadonlyArray<readonly [headers: Record<string, string>, base: string]> = [
    [{ host: 'models.example' }, 'http://models.example/llm/v1'],
    [{ host: 'Models.example:8443' }, 'http://Models.example:8443/llm/v1'],
    [{ host: 'm' }, 'http://m/llm/v1'],
    [{ host: '9-models.4-u.example0' }, 'http://9-models.4-u.example0/llm/v1'],
    [{ host: '[2001:db8::1]:80' }, 'http://[2001:db8::1]:80/llm/v1'],
    [{ host: '[::ffff:192.0.2.1]' }, 'http://[::ffff:192.0.2.1]/llm/v1'],
    [{ host: 'inside:80', 'x-forwarded-host': 'models.example', 'x-forwarded-proto': 'https' }, 'https://models.example/llm/v1'],
    [{ host: 'inside:80', 'x-forwarded-proto': 'javascript' }, 'http://inside:80/llm/v1'],
    [{ host: 'a"b' }, 'http://<gateway>/llm/v1'],
    [{ host: 'evil.example/phish?' }, 'http://<gateway>/llm/v1'],
    [{ host: 'user@evil.example' }, 'http://<gateway>/llm/v1'],
    [{ host: 'a..' + 'b'.repeat(300) }, 'http://<gateway>/llm/v1'],
  ]
  for (const [headers, base] of cases) {
    for (const url of ['/llm/v1/nothing', '/llm/nothing', '/llm/v1/messages/v1/chat/completions']) {
      const reply = await app.inject({ method: 'POST', url, headers: { authorization: `Bearer ${secret}`, ...headers } })
      t.equal(reply.statusCode, 404)
      t.match(
        reply.json().error.message,
        new RegExp(`base URL (?:of your client should be )?${base.replace(/[.[\]?]/g, '\\$&')}(?: with|, without)`),
        `${url} ${JSON.stringify(headers)}`
      )
    }
  }
  const anthropic = await app.inject({
    method: 'POST', url: '/llm/v1/nothing', headers: { host: 'models.example', 'anthropic-version': '2023-06-01' },
  })
  t.match(anthropic.json().error.message, /base URL http:\/\/models\.example\/llm with/)
})
