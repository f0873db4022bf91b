/** A streamed reply that breaks off behind any of its bytes: its caller sees that, and what it had told is counted. */
import Fastify from 'fastify'
import llmGateway from '../../plugins/index.js'
import { protocolNames, type ProtocolName } from '../../plugins/protocols/index.js'
import { gatewayOptions, listen, read } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { send } from '../metrics/traffic.js'
import { inParallel } from './caller.js'
import type { Report } from './processes.js'

const streamed = protocolNames.filter((name) => name !== 'embeddings' && name !== 'images')

/** Ways in which each protocol tells a failure in a stream. */
const told = /"error"|event: error|response\.failed/

/** `every`: how many bytes lie between two cuts. */
export async function cutEverywhere ({ every }: { readonly every: number }): Promise<Report> {
  const upstream = await startUpstream()
  const app = Fastify()
  await app.register(llmGateway, gatewayOptions(upstream.url, { log: false }))
  const origin = await listen(app)
  const violations: string[] = []
  let cuts = 0
  const tryAt = async (protocol: ProtocolName, whole: Buffer, cutAt: number): Promise<void> => {
    cuts += 1
    const { bytes, cut } = await read(await send(origin, protocol, true).reply)
    const text = bytes.toString()
    if (!cut && !told.test(text)) violations.push(`${protocol}, cut at ${cutAt} of ${whole.length}: a clean end`)
    if (!told.test(text) && !whole.subarray(0, bytes.length).equals(bytes)) violations.push(`${protocol}, cut at ${cutAt}: other bytes`)
  }
  for (const protocol of streamed) {
    const { bytes: whole } = await read(await send(origin, protocol, true).reply)
    const offsets = Array.from({ length: Math.ceil((whole.length - 1) / every) }, (_, i) => i * every)
    // One at a time: the upstream takes what it is to do from one queue.
    await inParallel(offsets.length, 1, async (i) => {
      upstream.queue({ cutAt: Number(offsets[i]) })
      await tryAt(protocol, whole, Number(offsets[i]))
    })
  }
  await app.close()
  await upstream.close()
  return { violations, slow: [], cuts }
}
