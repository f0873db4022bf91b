/** A member whose secret was refused, and has another one by now. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import { startGateway } from '../helpers/gateway.js'
import type { Upstream } from '../helpers/upstream.js'
import { ask, inOrder, seenBy, startPool, type PoolGateway } from './pool-gateway.js'

function takes (upstream: Upstream | undefined, secret: string, status = 401): void {
  if (upstream === undefined) throw new Error('there is one')
  const refusal = { status, body: { error: { message: 'Not that one' } } }
  upstream.respond = ({ headers }) => headers.authorization === `Bearer ${secret}` ? null : refusal
}

async function isServing (gateway: PoolGateway): Promise<boolean> {
  const [before = 0] = seenBy(gateway)
  t.match(await ask(gateway), { status: 200 })
  return Number(seenBy(gateway)[0]) > before
}

for (const status of [401, 403]) {
  t.test(`a new configuration brings another one, after ${status}`, async (t) => {
    const health = {}
    const gateway = await startPool(t, { rules: inOrder, gateway: { health } })
    takes(gateway.members[0], 'the-new-one', status)
    await ask(gateway)
    t.equal(await isServing(gateway), false)
    const after = async (credential: string | undefined): Promise<PoolGateway> => {
      const { m0, ...others } = gateway.options.upstreams ?? {}
      const { credential: _, ...bare } = Object(m0)
      const upstreams = { m0: { ...bare, ...credential !== undefined && { credential } }, ...others }
      return { ...gateway, ...await startGateway(t, '', { ...gateway.options, upstreams }) }
    }
    t.equal(await isServing(await after(undefined)), false, 'none at all tells nothing')
    t.equal(await isServing(await after('secret-0')), false, 'nor does the same')
    const next = await after('the-new-one')
    t.equal(await isServing(next), true)
    t.equal(await isServing(next), true)
    t.equal(gatewayOf(next.app).upstreamsStatus().upstreams[0]?.state, 'up')
    takes(gateway.members[0], 'yet-another', status)
    await ask(next)
    t.equal(await isServing(next), false, 'it is refused in its turn')
  })
}

t.test('only of a member whose secret was refused is it asked for where the request goes elsewhere', async (t) => {
  let times = 0
  const credential = async (): Promise<string> => {
    times += 1
    return 'secret'
  }
  const gateway = await startPool(t, { rules: inOrder, upstreams: [{}, { credential }] })
  for (let turn = 0; turn < 3; turn += 1) t.equal((await ask(gateway)).status, 200)
  t.strictSame([seenBy(gateway), times], [[3, 0], 0])
})

t.test('its file holds another one', async (t) => {
  const file = join(t.testdir({ token: 'the-old-one' }), 'token')
  const gateway = await startPool(t, { rules: inOrder, upstreams: [{ credential: { file } }] })
  takes(gateway.members[0], 'the-new-one')
  await ask(gateway)
  t.equal(await isServing(gateway), false)
  rmSync(file)
  await pause(2_100)
  t.equal(await isServing(gateway), false, 'that it is gone tells nothing')
  writeFileSync(file, 'the-new-one')
  // It is read again each second, by requests that go elsewhere.
  while (!await isServing(gateway)) await pause(100)
  t.equal(await isServing(gateway), true)
})

t.test('its file was not there, and comes later', async (t) => {
  const file = join(t.testdir({}), 'token')
  const gateway = await startPool(t, { rules: inOrder, upstreams: [{ credential: { file } }] })
  t.equal(await isServing(gateway), false)
  t.equal(await isServing(gateway), false)
  writeFileSync(file, 'the-new-one')
  while (!await isServing(gateway)) await pause(100)
  t.equal(await isServing(gateway), true)
})
