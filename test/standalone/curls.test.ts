import t from 'tap'
import type { GroupOptions } from '../../plugins/index.js'
import type { GatewayConfig } from '../../plugins/standalone/config-types.js'
import { curlLines, originOf } from '../../plugins/standalone/curls.js'

const real = { url: 'https://models.example', credential: 'x' }

function lines (config: Partial<GatewayConfig>): string[] {
  return curlLines({ upstreams: { main: { simulate: true }, real }, groups: {}, ...config }, 'http://h:1')
}

t.test('the origin is one that this machine can reach', async (t) => {
  t.equal(originOf({ host: '0.0.0.0', port: 8080 }), 'http://127.0.0.1:8080')
  t.equal(originOf({ host: '::', port: 8080 }), 'http://127.0.0.1:8080')
  t.equal(originOf({ host: '::1', port: 8080 }), 'http://[::1]:8080')
  t.equal(originOf({ host: '10.0.0.1', port: 80 }), 'http://10.0.0.1:80')
})

t.test('one line for each protocol that a group offers', async (t) => {
  const groups: GatewayConfig['groups'] = {
    inside: { protocols: ['responses', 'messages'], thirdParty: false },
    chat: { protocols: ['chat_completions', 'generate_content'], upstream: 'main', models: ["o'model"] },
  }
  t.same(lines({ groups, keys: [{ id: 'a', group: 'chat', secret: "it's" }] }), [
    "curl 'http://h:1/v1/chat/completions' -H 'authorization: Bearer it'\\''s' -H 'content-type: application/json' " +
      "-d '{\"model\":\"o'\\''model\",\"messages\":[{\"role\":\"user\",\"content\":\"Say hello\"}]}'",
    "curl 'http://h:1/v1beta/models/o'\\''model:generateContent' -H 'x-goog-api-key: it'\\''s' -H 'content-type: application/json' " +
      "-d '{\"contents\":[{\"role\":\"user\",\"parts\":[{\"text\":\"Say hello\"}]}]}'",
  ])
})

t.test('addresses stand below the prefix', async (t) => {
  t.match(lines({ prefix: '/llm/v1', groups: { g: { protocols: ['messages'] } } }), [/^curl 'http:\/\/h:1\/llm\/v1\/messages' /])
  t.match(lines({ prefix: '/llm', groups: { g: { protocols: ['messages'] } } }), [/^curl 'http:\/\/h:1\/llm\/v1\/messages' /])
})

t.test('a secret is shown only where all it opens is simulated', async (t) => {
  const keyIn = (config: Partial<GatewayConfig>): string | undefined => /x-api-key: ([^']*)/.exec(lines(config).join())?.[1]
  const keys = [
    { id: 'c', group: 'other', secret: 'c-secret' },
    { id: 'd', group: 'g', hash: `sha256:${'0'.repeat(64)}` },
    { id: 'a', group: 'g', secret: 'a-secret', disabled: true },
    { id: 'b', group: 'g', secret: 'b-secret' },
  ]
  const group: GroupOptions = { protocols: ['messages'] }
  t.equal(keyIn({ groups: { g: { ...group, upstream: 'main' } }, keys }), 'b-secret')
  t.equal(keyIn({ groups: { g: { ...group, upstream: { messages: 'main' } } }, keys }), 'b-secret')
  t.equal(keyIn({ groups: { g: group }, upstreams: { main: { simulate: true } }, keys }), 'b-secret')
  t.equal(keyIn({ groups: { g: { ...group, upstream: 'real' } }, keys }), 'YOUR_KEY')
  t.equal(keyIn({ groups: { g: { ...group, upstream: { messages: 'real' } } }, keys }), 'YOUR_KEY')
  t.equal(
    keyIn({ groups: { g: { protocols: ['messages', 'responses'], upstream: { messages: 'main', responses: 'real' } } }, keys }),
    'YOUR_KEY',
    'it opens another one, too'
  )
  t.equal(keyIn({ groups: { g: group }, upstreams: { real }, keys }), 'YOUR_KEY')
  const routed = (upstream: string): GroupOptions => ({ ...group, upstream: 'main', routes: [{ models: ['m-*'], upstream }] })
  t.equal(keyIn({ groups: { g: routed('real') }, keys }), 'YOUR_KEY', 'some of its models are real')
  t.equal(keyIn({ groups: { g: routed('main') }, keys }), 'b-secret')
  t.equal(keyIn({ groups: { g: { ...group, upstream: 'main' } } }), 'YOUR_KEY')
})
