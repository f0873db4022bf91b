import t from 'tap'
import { credentialHeaders, gatewayHeaders, signInHeaders } from '../../plugins/protocols/index.js'
import { callOf } from '../../plugins/upstreams/call.js'
import { readdress } from '../../plugins/forward/request-headers.js'
import { requestTo, upstreamOf } from '../upstreams/request.js'

t.test('nothing that a mount puts in for its own upstream goes to another one', async (t) => {
  for (const credential of ['of-the-group', undefined]) {
    const upstream = upstreamOf({
      url: 'http://group.example', ...credential !== undefined && { credential }, headers: { 'x-own': 'group' },
    })
    const called = callOf(upstream, requestTo('/v1/chat/completions', { body: '{"model":"m"}' }), credential ?? null, null)
    if (!('path' in called)) throw new Error('refused')
    for (const name of [...credentialHeaders, ...signInHeaders, ...gatewayHeaders]) {
      for (const spelled of [name, name.toUpperCase(), name.replaceAll('-', '_')]) {
        const sent = readdress({
          host: 'mount.example',
          Host: 'mount.example',
          [spelled]: 'of-the-mount',
          'x-own': 'of-the-mount',
          'X-OWN': 'of-the-mount',
          x_own: 'of-the-mount',
          'X-Kept': 'yes',
        }, called)
        t.notMatch(JSON.stringify(sent), /of-the-mount|mount\.example/, spelled)
        t.equal(sent['x_own'], undefined)
        t.match(sent, { host: 'group.example', 'x-own': 'group', 'X-Kept': 'yes' })
        t.equal(JSON.stringify(sent).includes('of-the-group'), credential !== undefined)
      }
    }
  }
})
