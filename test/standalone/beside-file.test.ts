import { join } from 'node:path'
import t from 'tap'
import { loadConfig, parseConfig } from '../../plugins/standalone/config.js'

const text = `
upstreams:
  own: { url: "https://models.example", credential: { file: ./credential } }
  far: { url: "https://models.example", credential: { file: /run/secrets/far }, query: { file: ./query } }
  text: { url: "https://models.example", credential: s3cret }
  none: { simulate: true }
groups: { chat: { protocols: [messages], upstream: own } }
validation: { schemas: { messages: ./messages.json, responses: { type: object } } }
prices: { files: [prices.yaml] }
state:
  engine: redis
  url: "redis://127.0.0.1:9"
  path: ./data
  password: { file: redis.txt }
  sentinel: { name: primary, password: { file: ../sentinel.txt } }
  usageStore: { url: "postgres://h/d", password: { file: postgres.txt } }
`

t.test('files that a configuration names stand beside it, and what the process makes does not', async (t) => {
  const folder = t.testdir({ 'gateway.yaml': text })
  const at = (name: string): string => join(folder, name)
  t.match(loadConfig(at('gateway.yaml'), {}), {
    upstreams: {
      own: { credential: { file: at('credential') } },
      far: { credential: { file: '/run/secrets/far' }, query: { file: './query' } },
      text: { credential: 's3cret' },
      none: { simulate: true },
    },
    validation: { schemas: { messages: at('messages.json'), responses: { type: 'object' } } },
    prices: { files: [at('prices.yaml')] },
    state: {
      path: './data',
      password: { file: at('redis.txt') },
      sentinel: { name: 'primary', password: { file: at('../sentinel.txt') } },
      usageStore: { password: { file: at('postgres.txt') } },
    },
  })
})

t.test('a configuration that names no file is as it was', async (t) => {
  const plain = 'upstreams: { a: { simulate: true } }\ngroups: { a: { protocols: [messages] } }\n'
  for (const rest of ['', 'state: { engine: memory }\nvalidation: { maxDepth: 5 }\nprices: { unpriced: allow }\n']) {
    const folder = t.testdir({ 'gateway.yaml': plain + rest })
    t.strictSame(loadConfig(join(folder, 'gateway.yaml'), {}), parseConfig(plain + rest, {}))
  }
})
