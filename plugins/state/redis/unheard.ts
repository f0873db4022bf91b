/**
 * What the client asks by itself, and whose answer it looks at nowhere: where none comes, as the server is slow, dies or refuses it, that
 * is a rejection that nobody hears, and ends the process.
 */
import type { Cluster, Redis } from 'ioredis'

const retryMs = 1_000

/** `ASKING` of a node of a cluster that a slot is on its way to. What is asked behind it fails by itself. */
export function hearAsking (node: Redis): void {
  const asking = node.asking.bind(node)
  Object.assign(node, { asking: async () => { await asking().catch(() => {}) } })
}

/** Where a connection is made anew. Needs `autoResubscribe: false`. `onAgain`: from now on messages come again. */
export async function keepSubscribed (client: Redis | Cluster, channel: string, onAgain: () => void): Promise<void> {
  await client.subscribe(channel)
  const again = (): void => {
    client.subscribe(channel).then(onAgain, () => { if (client.status === 'ready') setTimeout(again, retryMs).unref() })
  }
  client.on('ready', again)
}
