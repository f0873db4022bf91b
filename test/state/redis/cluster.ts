import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import type { Test } from 'tap'
import { startRedis, type RedisServer } from './server.js'

/** Two nodes of a Redis Cluster with half of the slots each, and a connection to each of them. */
export async function startHalves (t: Test): Promise<{ servers: RedisServer[], operators: Redis[] }> {
  const servers = [await startRedis({ cluster: true }), await startRedis({ cluster: true })]
  const operators = servers.map(({ url }) => new Redis(url))
  t.teardown(async () => {
    for (const operator of operators) operator.disconnect()
    for (const server of servers) await server.stop()
  })
  const [one, other] = operators
  await one?.call('CLUSTER', 'DELSLOTSRANGE', '8192', '16383')
  await other?.call('CLUSTER', 'DELSLOTSRANGE', '0', '8191')
  await one?.call('CLUSTER', 'MEET', '127.0.0.1', String(servers[1]?.port))
  for (const operator of operators) while (!/cluster_state:ok[^]*cluster_known_nodes:2/.test(String(await operator.cluster('INFO')))) await pause(20)
  return { servers, operators }
}
