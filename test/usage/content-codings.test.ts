import t from 'tap'
import { codings } from '../../plugins/usage/content-codings.js'
import { call, listen, read } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { hosts } from './hosts.js'

const cases: readonly [accepted: string, sent: string][] = [
  ['gzip, deflate, br', 'gzip, deflate, br'],
  ['GZIP;q=1.0', 'GZIP;q=1.0'],
  ['identity', 'identity'],
  ['gzip;q=1.0,compress;q=0.5, br', 'gzip;q=1.0, br'],
  ['gzip, *;q=0.1', 'gzip'],
  ['gzip,,br', 'gzip,br'],
  ['gzipped', 'identity'],
  ['compress', 'identity'],
  ['*', 'identity'],
  [',', 'identity'],
  ['', 'identity'],
  ['zstd', codings.has('zstd') ? 'zstd' : 'identity'],
]

for (const host of hosts) {
  t.test(`${host.name}: a caller's reply is asked for in no coding that it could not be counted in`, async (t) => {
    const upstream = await startUpstream(t)
    const { app } = await host.start(t, upstream.url)
    const url = await listen(app)
    for (const [accepted, sent] of cases) {
      const { reply } = call(`${url}/v1/chat/completions`, {
        headers: { 'accept-encoding': accepted }, body: '{"model":"m","messages":[{"role":"user","content":"hi"}]}',
      })
      await read(await reply)
      t.equal((await upstream.requests.next()).headers['accept-encoding'], sent, accepted)
    }
  })

  t.test(`${host.name}: what is not counted is asked for as the caller says, and so is nothing`, async (t) => {
    const upstream = await startUpstream(t)
    const { app } = await host.start(t, upstream.url)
    const url = await listen(app)
    const headers = { 'accept-encoding': 'compress', 'x-api-key': 'sk-caller-0123456789', 'anthropic-version': '2023-06-01' }
    const counting = call(`${url}/v1/messages/count_tokens`, { headers, body: '{"model":"m","messages":[{"role":"user","content":"hi"}]}' })
    await read(await counting.reply)
    t.equal((await upstream.requests.next()).headers['accept-encoding'], 'compress')
    const silent = call(`${url}/v1/chat/completions`, { body: '{"model":"m","messages":[{"role":"user","content":"hi"}]}' })
    await read(await silent.reply)
    t.equal((await upstream.requests.next()).headers['accept-encoding'], undefined)
  })
}
