import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import t from 'tap'
import { createRewriteUrl } from '../../plugins/paths/index.js'
import { listen } from '../helpers/gateway.js'
import { listenAtTwo } from '../helpers/two-addresses.js'
import { askOnce, Wire } from '../helpers/wire.js'
import { build } from './seen-host.js'

t.test('two hosts are one too many, and an empty one is none', async (t) => {
  const { app, seen } = await build(t)
  const url = await listen(app)
  const reply = await askOnce(url, ['POST /v1/messages HTTP/1.1', 'host: a', 'Host: b', 'content-type: application/json'], '{}')
  t.match([reply.status, JSON.parse(reply.body)], [400, { type: 'error', error: { details: { error_code: 'bad_request' } } }])
  t.equal((await askOnce(url, ['POST /v1/messages HTTP/1.1', 'host:', 'content-type: application/json'], '{}')).status, 400)
  t.equal(seen.length, 0)
  t.equal(
    (await askOnce(url, ['POST /v1/messages HTTP/1.1', 'host: a', 'x-host: b', 'hos1: c', 'content-type: application/json'], '{}')).status,
    200
  )
})

t.test('a path of ours that the router cannot decode is refused natively on a socket, without a word of it', async (t) => {
  for (const server of [{}, { rewriteUrl: createRewriteUrl() }]) {
    const { app, seen } = await build(t, {}, server)
    const given: string[] = []
    app.addHook('onSend', async ({ originalUrl }) => { given.push(originalUrl) })
    const url = await listen(app)
    for (const path of [
      '/v1/%zz?key=c4nary', '/v1beta/models/%c3%28:generateContent?key=c4nary', '/v1/v1/messages/%?key=c4nary',
      '/v1/%2e/messages?key=c4nary',
    ]) {
      const reply = await askOnce(url, [`POST ${path} HTTP/1.1`, 'host: h'], '{}')
      t.match([reply.status, JSON.parse(reply.body)], [400, { error: { message: /^The URL path holds/ } }], path)
      t.notMatch(reply.body, /c4nary|zz/)
    }
    t.equal(given.length, 4)
    t.notMatch(given.join(' '), /c4nary/)
    t.match((await askOnce(url, ['GET /own/%zz HTTP/1.1', 'host: h'])).body, 'FST_ERR_BAD_URL', 'what is not ours stays the host\'s')
    t.equal((await askOnce(url, ['GET /own?a=%zz HTTP/1.1', 'host: h'])).status, 200)
    t.equal(
      (await askOnce(url, ['POST /v1/models/a%2Fb:generateContent HTTP/1.1', 'host: h', 'content-type: application/json'], '{}')).status,
      200
    )
    t.equal(seen.length, 2)
  }
})

t.test('a body in a coding that servers disagree on is refused', async (t) => {
  const { app, seen } = await build(t)
  const url = await listen(app)
  for (const coding of ['gzip, chunked', 'identity, chunked']) {
    const wire = new Wire(url)
    wire.send([
      'POST /v1/messages HTTP/1.1', 'host: a', 'content-type: application/json', `transfer-encoding: ${coding}`, '', '2\r\n{}\r\n0\r\n\r\n',
    ].join('\r\n'))
    t.equal((await wire.reply()).status, 400, coding)
    wire.destroy()
  }
  t.equal(seen.length, 0)
})

t.test('nor is it told at the second address of a name that has two', async (t) => {
  const { app, seen } = await build(t)
  const addresses = await listenAtTwo(t, app)
  t.strictSame(addresses.map(({ address }) => address).sort(), ['127.0.0.1', '127.0.0.2'])
  for (const { address, port } of addresses) {
    const reply = async (path: string): Promise<{ status: number, body: string }> => {
      const [message]: IncomingMessage[] = await once(get({ host: address, port, path }), 'response')
      return { status: message?.statusCode ?? 0, body: (await message?.setEncoding('utf8').toArray() ?? []).join('') }
    }
    const refused = await reply('/v1/%zz?key=c4nary')
    t.equal(refused.status, 400)
    t.match(refused.body, /could be read in two ways/, address)
    t.notMatch(refused.body, /c4nary/)
    t.match((await reply('/own/%zz')).body, 'FST_ERR_BAD_URL', 'what is not ours stays the host\'s')
    t.equal((await reply('/own')).status, 200)
  }
  t.equal(seen.length, 2)
})
