import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { modelCallOf, type ModelCall } from '../core/call/model-call.js'

/** A larger reply is passed on as it comes, without the header. */
const maxHeldBytes = 4 * 1024 * 1024

const costHeader = 'x-llm-gateway-cost'

/**
 * Tells the caller the cost of its reply in a header. Headers are sent before the body, so the body is held until it is complete.
 * `amountOf`: cost of a reply that was read whole. Register it after the usage plugin, which reads the reply.
 */
export function addCostHeader (app: FastifyInstance, amountOf: (llm: ModelCall) => string | null): void {
  app.addHook('preHandler', function llmGatewayCostHeader (request, _reply, done) {
    const llm = modelCallOf(request)
    // A compressed reply is read in parallel, and not finished before it ends.
    if (llm !== null && !llm.stream && llm.endpoint.usage !== null) request.raw.headers['accept-encoding'] = 'identity'
    done()
  })
  app.addHook('onSend', async function llmGatewayCostHeader (request, reply, payload) {
    const llm = modelCallOf(request)
    if (llm === null || llm.stream || llm.endpoint.usage === null || reply.statusCode >= 300) return payload
    const held = payload instanceof Readable ? await hold(payload) : payload
    const amount = amountOf(llm)
    if (amount !== null) reply.header(costHeader, amount)
    return held
  })
}

/** Returns the whole reply or, if it is too large or breaks off, a stream of the same bytes with the same end. */
async function hold (stream: Readable): Promise<Buffer | Readable> {
  const chunks: Buffer[] = []
  const rest: AsyncIterableIterator<Buffer> = stream[Symbol.asyncIterator]()
  let bytes = 0
  try {
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) {
      chunks.push(next.value)
      bytes += next.value.length
      if (bytes > maxHeldBytes) return Readable.from(continued(chunks, rest))
    }
    return Buffer.concat(chunks)
  } catch (error) {
    return Readable.from(broken(chunks, error))
  }
}

async function * continued (chunks: Buffer[], rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield * chunks.splice(0)
  yield * rest
}

async function * broken (chunks: readonly Buffer[], error: unknown): AsyncGenerator<Buffer> {
  yield * chunks
  throw error
}
