/**
 * Commands that the client sends by itself without handling their failure. If no answer comes, because the server is slow, dies or refuses,
 * that is an unhandled rejection, which ends the process.
 */
import type { Cluster, Redis } from 'ioredis'

const retryMs = 1_000

/** `ASKING` for a node of a cluster that a slot is moving to. The command behind it fails by itself. */
export function hearAsking (node: Redis): void {
  const asking = node.asking.bind(node)
  Object.assign(node, { asking: async () => { await asking().catch(() => {}) } })
}

/**
 * Connections to Sentinels, one of which may be away: without a listener the client prints each error, with its address. And they tell of
 * each primary that is replaced: the client would leave its own for any of them. Those that stay open to hear it are made anew with the
 * password that Sentinels have then. One that tells it while others are asked for the primary would end the client for good: they are
 * asked again.
 */
export function hearSentinels (client: Redis): void {
  const connector = Object(Reflect.get(client, 'connector'))
  const { connect, connectToSentinel } = connector
  if (typeof connectToSentinel !== 'function') return
  connector.connect = async (...args: unknown[]) => await connect.apply(connector, args).catch((error: unknown) => {
    if (Reflect.get(client, 'manuallyClosing') === true) throw error
    return connector.connect(...args)
  })
  connector.connectToSentinel = (endpoint: unknown, listening?: object) => {
    const sentinel: Redis = connectToSentinel.call(connector, endpoint, { ...listening, autoResubscribe: false }).on('error', () => {})
    // By itself the client gives up one that is away for twenty attempts.
    if (listening !== undefined) subscribeAgain(sentinel, '+switch-master', () => {})
    Object.defineProperty(sentinel.options, 'password', { get: () => client.options.sentinelPassword })
    const emit = sentinel.emit.bind(sentinel)
    const isOther = (event: string, told: unknown): boolean => event === 'message' && !String(told).startsWith(`${client.options.name} `)
    return Object.assign(sentinel, { emit: (event: string, ...told: unknown[]) => !isOther(event, told[1]) && emit(event, ...told) })
  }
}

/** Subscribes again when a connection is made anew. Needs `autoResubscribe: false`. `onAgain`: messages arrive again from now on. */
export async function keepSubscribed (client: Redis | Cluster, channel: string, onAgain: () => void): Promise<void> {
  await client.subscribe(channel)
  subscribeAgain(client, channel, onAgain)
}

function subscribeAgain (client: Redis | Cluster, channel: string, onAgain: () => void): void {
  const again = (): void => {
    client.subscribe(channel).then(onAgain, () => { if (client.status === 'ready') setTimeout(again, retryMs).unref() })
  }
  client.on('ready', again)
}
