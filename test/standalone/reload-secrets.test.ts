/**
 * Reloads with requests in flight, which swap addresses, secrets, names and keys: each attempt of a request goes to an upstream of the
 * group that its one configuration lets it in for, with the secret which that configuration has for that address.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { GatewayConfig } from '../../plugins/standalone/config-types.js'
import { startUpstream, type Upstream } from '../helpers/upstream.js'
import { addresses, configOf, fromCode, fromFile, names, plan, type Place, type Plan } from './changing.js'
import { asks, fates, World } from './reload-world.js'

const runs = Number(process.env['FUZZ_RUNS'] ?? 20)

interface Built {
  readonly world: World
  readonly upstreams: readonly Upstream[]
  readonly folder: string
  readonly next: (made: Plan, inCode: boolean) => GatewayConfig
}

async function build (t: Test): Promise<Built> {
  const world = new World()
  const folder = mkdtempSync(join(tmpdir(), 'llm-gateway-secrets-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const upstreams = await Promise.all(Array.from({ length: addresses }, async () => await startUpstream(t)))
  for (const [address, upstream] of upstreams.entries()) upstream.respond = (request) => world.arrive(address, request)
  const around = { urls: upstreams.map(({ url }) => url), folder, gate: world.awaited }
  return { world, upstreams, folder, next: (made, inCode) => configOf(world.plans.push(made) - 1, made, around, inCode) }
}

/** As an operator does it, of all configurations: the next secret in the place of each. */
function renewFiles (folder: string): void {
  for (const name of readdirSync(folder)) {
    const file = join(folder, name)
    writeFileSync(file, readFileSync(file, 'utf8').replace(/r(\d+)/, (_, count) => `r${Number(count) + 1}`))
  }
}

/** Each upstream at the address, all of them in the pools of `a`, or of `b`. */
function everywhere (at: number, first: number): Plan {
  const order = [...names.slice(first), ...names.slice(0, first)]
  return { order, at: names.map(() => at), ways: names.map(() => 'text' as const), keys: ['a', 'b', null, null] }
}

/** Nothing runs, as the console and the metrics tell; under a configuration for each that there was of name, address and pool. */
async function checkIdle (t: Test, { origin, put, inCode }: Place, { world, next }: Built): Promise<void> {
  for (let at = 0; at < addresses; at++) {
    for (const first of [0, 3]) {
      await put(next(everywhere(at, first), inCode))
      world.reloaded()
      const told = await (await fetch(`${origin}/console/upstreams`)).text()
      t.strictSame([...new Set(told.match(/"active":\d+/g))], ['"active":0'], told)
    }
  }
  t.notMatch(await (await fetch(`${origin}/metrics`)).text(), /^llm_gateway_(?:upstream_)?active_requests\{.*\} [^0]/m)
}

/** All places of both groups can be taken. */
async function checkPlaces (t: Test, { origin }: Place, { world }: Built): Promise<void> {
  world.gate.shut()
  world.fates = [{ fault: 'none', held: true }]
  const all = Array.from({ length: 32 }, async (_, i) => await world.send(origin, { caller: i % 2, kind: 'chat', id: 0 }))
  await pause(50)
  world.gate.open()
  await Promise.all(all)
  t.strictSame(world.wrong.splice(0), [])
}

for (const [title, from] of Object.entries({ 'from a file': fromFile, 'with functions for secrets': fromCode })) {
  t.test(`reloads ${title}`, async (t) => {
    const built = await build(t)
    const { world, folder, next } = built
    const inCode = from === fromCode
    const place = await from(t, next(everywhere(0, 0), inCode))
    const { origin, put } = place
    await fc.assert(fc.asyncProperty(plan, fc.tuple(asks, asks, asks), fates, async (made, [before, meanwhile, after], given) => {
      world.fates = given
      world.gate.shut()
      const all = before.map(async (ask) => await world.send(origin, ask))
      await pause(5)
      const reloaded = put(next(made, inCode))
      all.push(...meanwhile.map(async (ask) => await world.send(origin, ask)))
      await reloaded
      world.reloaded()
      all.push(...after.map(async (ask) => await world.send(origin, ask)))
      renewFiles(folder)
      await pause(2)
      world.gate.open()
      await Promise.all(all)
      const told = world.wrong.splice(0)
      if (told.length > 0) throw new Error(told.join('\n'))
    }), { numRuns: runs, endOnFailure: true })
    t.comment(JSON.stringify(world.counts))
    for (const [what, count] of Object.entries(world.counts)) t.ok(count > 0, `${what}: ${count}`)
    await checkIdle(t, place, built)
    await checkPlaces(t, place, built)
  })
}

t.test('a secret that is awaited while its upstream gets another address and its group another one', async (t) => {
  const built = await build(t)
  const { world, next } = built
  const ways = names.map(() => 'renewed' as const)
  const first: Plan = { ...everywhere(0, 0), ways }
  const second: Plan = { ...everywhere(1, 3), ways, keys: ['b', 'a', null, null] }
  const { origin, put } = await fromCode(t, next(first, true))
  const held = { kind: 'chat', id: 0 } as const
  world.gate.shut()
  const before = [0, 1].map(async (caller) => await world.send(origin, { ...held, caller }))
  while (world.asked < 2) await pause(1)
  await put(next(second, true))
  world.reloaded()
  const after = [0, 1].map(async (caller) => await world.send(origin, { ...held, caller }))
  while (world.asked < 4) await pause(1)
  t.equal(world.counts.arrived, 0, 'all wait for a secret')
  world.gate.open()
  t.strictSame(await Promise.all([...before, ...after]), [200, 200, 200, 200])
  t.equal(world.counts.late, 2)
  t.strictSame(world.wrong, [])
})

t.test('an id of what an upstream made before it had another address and another secret', async (t) => {
  const built = await build(t)
  const { world, next } = built
  const { origin, put } = await fromFile(t, next(everywhere(0, 0), false))
  t.equal(await world.send(origin, { caller: 0, kind: 'make', id: 0 }), 200)
  await put(next(everywhere(1, 0), false))
  world.reloaded()
  t.equal(await world.send(origin, { caller: 0, kind: 'follow', id: 1 }), 200)
  t.equal(await world.send(origin, { caller: 0, kind: 'fetch', id: 1 }), 200)
  // Now it is of the other group, and nobody in this one knows the id.
  await put(next(everywhere(2, 3), false))
  world.reloaded()
  t.equal(await world.send(origin, { caller: 0, kind: 'follow', id: 1 }), 200)
  t.strictSame(world.wrong, [])
})
