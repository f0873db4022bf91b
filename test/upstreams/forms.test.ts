import httpProxy from '@fastify/http-proxy'
import Fastify from 'fastify'
import t from 'tap'
import llmGateway, { proxyOptions } from '../../plugins/index.js'
import { call, gatewayOptions, listen, read } from '../helpers/gateway.js'
import { overloaded, inOrder, startPool } from './pool-gateway.js'

const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0xff, 0x0d, 0x0a, 0x2d, 0x2d])

function form (model: string): Buffer {
  const field = (name: string, value: string): string => `--b0\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
  return Buffer.concat([
    Buffer.from(field('prompt', 'model=ours, "ours"\r\nname="model"')),
    Buffer.from('--b0\r\nContent-Disposition: form-data; name="image"; filename="ours"\r\nContent-Type: image/png\r\n\r\n'),
    png,
    Buffer.from('\r\n'),
    Buffer.from(`--b0\r\nContent-Type: text/plain\r\ncontent-disposition:form-data;name=model\r\n\r\n${model}\r\n`),
    Buffer.from(field('n', 'ours')), Buffer.from('--b0--\r\n'),
  ])
}

const headers = { 'content-type': 'multipart/form-data; boundary=b0' }

t.test('a part that tells its length tells the one of the name that it has then, and no other length changes', async (t) => {
  const lines = 'Content-Length: 4\r\ncontent-length:4 \r\nContent-Disposition: form-data; name="model"\r\nX: Content-Length: 4'
  const sized = (name: string): string =>
    `--b0\r\n${lines.replaceAll(/(?<=^content-length: *)4/gim, String(Buffer.byteLength(name)))}\r\n\r\n${name}\r\n`
  const other = '--b0\r\nContent-Disposition: form-data; name="prompt"\r\nContent-Length: 21\r\n\r\n--\r\nContent-Length: 4'
  const models = { ours: 'a much longer name of theirs, ü', '': 'x', '--': 'y' }
  const gateway = await startPool(t, { rules: inOrder, upstreams: [{ models }] })
  const url = await listen(gateway.app)
  for (const [asked, sent] of Object.entries(models)) {
    const first = (name: string): string => `${sized(name)}${other}\r\n--b0--`
    const last = (name: string): string => `${other.replace('21', '25')}    \r\n${sized(name)}--b0--`
    for (const form of [first, last]) {
      await read(await call(`${url}/v1/images/edits`, { headers, body: form(asked) }).reply)
      t.equal(gateway.members[0]?.seen.at(-1)?.body.toString(), form(sent))
    }
  }
})

t.test('in a form the one value is replaced, by each member with its own name, and nothing else', async (t) => {
  const models = [{ models: { ours: 'a much longer name of theirs', ü: 'ä' } }, { models: { ours: 'x' } }]
  const gateway = await startPool(t, { rules: inOrder, upstreams: models })
  const mounting = Fastify()
  t.teardown(() => mounting.close())
  await mounting.register(llmGateway, gatewayOptions('', { ...gateway.options, routes: false }))
  await mounting.register(httpProxy, { ...proxyOptions(), upstream: 'http://127.0.0.1:9', prefix: '/v1', rewritePrefix: '/v1' })
  for (const app of [gateway.app, mounting]) {
    const url = await listen(app)
    for (const [asked, first, second] of [
      ['ours', 'a much longer name of theirs', 'x'], ['ü', 'ä', 'ü'], ['other', 'other', 'other'], ['', '', ''],
    ] as const) {
      gateway.members[0]?.queue(overloaded)
      const reply = await call(`${url}/v1/images/edits`, { headers, body: form(asked) }).reply
      t.equal(reply.statusCode, 200)
      await read(reply)
      const [one, two] = gateway.members.map(({ seen }) => seen.at(-1))
      t.equal(one?.body.equals(form(first)), true, first)
      t.equal(two?.body.equals(form(second)), true, second)
      t.equal(Number(one?.headers['content-length']), form(first).length)
    }
  }
  const settled = await gateway.settled.next()
  t.match(settled, { model: 'ours', routing: { upstream: 'm1', sentModel: 'x' } })
})
