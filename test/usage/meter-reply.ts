import { endpoints } from '../../plugins/protocols/index.js'
import { LlmRequest, type ReplyTap } from '../../plugins/request.js'
import { planOf } from '../../plugins/usage/plan.js'
import { UsageTap } from '../../plugins/usage/tap.js'

/** A model request of the first endpoint of a protocol, or of the named endpoint. */
export function requestFor (name: string): LlmRequest {
  const endpoint = endpoints.find((known) => known.id === name || known.protocol === name)
  if (endpoint === undefined) throw new Error(`no endpoint ${name}`)
  return new LlmRequest({ kind: 'endpoint', endpoint, url: '/', mountLength: 0, model: null, keys: null, repair: null })
}

/** A tap on the reply to `llm`, as the plugin opens it. `settled` resolves once nothing is held any more. */
export function tapOn (llm: LlmRequest, headers: Record<string, string> = {}, takeOut = false): { tap: ReplyTap, settled: Promise<void> } {
  const { usage } = llm.endpoint
  if (usage === null) throw new Error('this endpoint is not metered')
  let settle = (): void => {}
  const settled = new Promise<void>((resolve) => { settle = resolve })
  const options = { takeOut, hold: () => { llm.holds += 1 }, release: () => { llm.holds -= 1; settle() } }
  const tap = new UsageTap(llm, planOf(usage), headers, options)
  if (headers['content-encoding'] === undefined) settle()
  return { tap, settled }
}

/** Passes pieces through a tap to a clean end. Returns the request, and the bytes that the caller gets. */
export async function meterReply (name: string, pieces: readonly Buffer[], headers: Record<string, string> = {}, takeOut = false): Promise<{ llm: LlmRequest, out: Buffer }> {
  const llm = requestFor(name)
  const { tap, settled } = tapOn(llm, headers, takeOut)
  const out = pieces.map((piece) => tap.push(piece))
  out.push(tap.end())
  await settled
  return { llm, out: Buffer.concat(out.filter((piece) => piece !== null)) }
}
