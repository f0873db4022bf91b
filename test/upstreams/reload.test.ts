/** What a pool knows of its members outlives a reload of the file. */
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { startUpstream, type Upstream } from '../helpers/upstream.js'
import { chat, start, status, yaml, type Running } from '../standalone/run.js'

function pooled (url: string, pool: string, weight = 1): string {
  const pools = `pools: { ${pool}: { members: [{ upstream: main, concurrency: 1, weight: ${weight} }] } }`
  return yaml(url, ['key-a'], pools).replace('upstream: main }', `upstream: ${pool} }`)
}

/** One request that its upstream holds until `release`. */
async function startHeld (t: Test): Promise<Running & { release: () => Promise<number>, upstream: Upstream }> {
  const upstream = await startUpstream(t)
  const running = await start(t, pooled(upstream.url, 'one'))
  let letGo = (): void => {}
  const gate = new Promise<void>((resolve) => { letGo = resolve })
  upstream.queue({ fixture: 'chat_completions.json', before: async () => await gate })
  const reply = chat(running.origin, 'key-a')
  while (upstream.seen.length === 0) await pause(5)
  const release = async (): Promise<number> => {
    letGo()
    const response = await reply
    await response.text()
    return response.status
  }
  return { ...running, release, upstream }
}

t.test('a request that was begun before a reload counts for the concurrency of its member until it ends', async (t) => {
  const { gateway, origin, write, release, upstream } = await startHeld(t)
  t.equal(await status(origin, 'key-a'), 503, 'the only place is taken')
  write(pooled(upstream.url, 'one', 2))
  t.equal(await gateway.reload(), true)
  t.equal(await status(origin, 'key-a'), 503, 'and still is')
  t.equal(upstream.seen.length, 1)
  t.equal(await release(), 200)
  t.equal(await status(origin, 'key-a'), 200)
  t.equal(await gateway.reload(), true)
  t.equal(await status(origin, 'key-a'), 200, 'nothing is counted for ever')
})

t.test('a pool of another name has counts of its own', async (t) => {
  const { gateway, origin, write, release, upstream } = await startHeld(t)
  write(pooled(upstream.url, 'other'))
  t.equal(await gateway.reload(), true)
  t.equal(await status(origin, 'key-a'), 200)
  t.equal(await release(), 200)
})
