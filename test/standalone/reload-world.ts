/** Upstreams that judge what comes to them, while configurations follow one another. */
import fc from 'fast-check'
import { replyFixture, type Script, type UpstreamRequest } from '../helpers/upstream.js'
import { callers, secretPattern, type Plan } from './changing.js'

export interface Ask {
  readonly caller: number
  readonly kind: 'chat' | 'stream' | 'routed' | 'make' | 'follow' | 'fetch'
  /** Which of the ids that were made by now. */
  readonly id: number
}

export const asks = fc.array(fc.record({
  caller: fc.nat(callers.length - 1),
  kind: fc.constantFrom('chat' as const, 'stream' as const, 'routed' as const, 'make' as const, 'follow' as const, 'fetch' as const),
  id: fc.nat(1_000),
}), { minLength: 1, maxLength: 5 })

/** What becomes of a request that came to an upstream. `held`: not before the reload is done. */
export const fates = fc.array(fc.record({
  fault: fc.oneof({ weight: 2, arbitrary: fc.constant('none' as const) }, {
    weight: 2, arbitrary: fc.constantFrom('cut' as const, 401, 403, 404, 429, 500, 503),
  }),
  held: fc.boolean(),
}), { minLength: 1, maxLength: 8 })

/** A door that is shut again and again; who came before it is opened goes on together. */
class Gate {
  #open = (): void => {}
  #passed: Promise<void> = Promise.resolve()

  shut (): void {
    this.#passed = new Promise((resolve) => { this.#open = resolve })
  }

  open (): void {
    this.#open()
  }

  readonly passed = async (): Promise<void> => await this.#passed
}

export class World {
  readonly plans: Plan[] = []
  readonly gate = new Gate()
  readonly wrong: string[] = []
  readonly ids = ['resp_nobody']
  /** The newest configuration whose reload is done. */
  done = 0
  /** Secrets that were waited for. */
  asked = 0
  fates: ReadonlyArray<{ readonly fault: string | number, readonly held: boolean }> = []
  /** `late`: attempts of a configuration that was replaced by then. */
  readonly counts = { arrived: 0, late: 0, retriedLate: 0, answered: 0, streamed: 0, refused: 0, renewed: 0 }
  readonly #sent = new Map<string, { readonly caller: number, readonly from: number, by: number | null }>()

  /** For a secret that comes once the gate is open. */
  readonly awaited = async (): Promise<void> => {
    this.asked += 1
    await this.gate.passed()
  }

  /** The newest configuration is in. */
  reloaded (): void {
    this.done = this.plans.length - 1
  }

  /** What comes to the upstream at an address. */
  arrive (address: number, request: UpstreamRequest): Script {
    const { url, rawHeaders, body, headers } = request
    const mark = String(headers['x-mark'])
    const sent = this.#sent.get(mark)
    const secrets = [url, ...rawHeaders, body.toString()].join('\n').split(/[\s=;,&?"]+/).filter((word) => word.startsWith('canary-'))
    const [, version, name, at, group] = secretPattern.exec(secrets.join()) ?? []
    const told = `${mark} came to ${address} with ${secrets.join()}`
    const by = Number(version)
    const retried = typeof sent?.by === 'number'
    if (sent === undefined || version === undefined) this.wrong.push(told)
    else {
      if (Number(at) !== address) this.wrong.push(`${told}, which is for another address`)
      if (this.plans[by]?.keys[sent.caller] !== group) this.wrong.push(`${told}, which is not for the group of its key`)
      if (by < sent.from) this.wrong.push(`${told}, though it began under ${sent.from}`)
      if ((sent.by ??= by) !== by) this.wrong.push(`${told}, though it went by ${sent.by} before`)
    }
    if (by < this.done) this.counts.late += 1
    if (by < this.done && retried) this.counts.retriedLate += 1
    if (!secrets.join().endsWith('-r0')) this.counts.renewed += 1
    return this.#script(request, { mark, name, said: secrets.join() })
  }

  #script ({ url, json, raw }: UpstreamRequest, { mark, name, said }: Readonly<Record<string, unknown>>): Script {
    const { fault, held } = this.fates[this.counts.arrived++ % this.fates.length] ?? { fault: 'none', held: false }
    const before = held ? this.gate.passed : async (): Promise<void> => {}
    if (fault === 'cut') {
      before().then(() => raw.req.socket.destroy())
      return { stallAt: 'headers' }
    }
    if (typeof fault === 'number') return { status: fault, body: { error: { message: `no ${String(said)}` } }, before }
    if (json['stream'] === true) {
      const body = replyFixture('chat_completions.include_usage.sse')
      const later = async (write: number): Promise<void> => { if (write > 0) await before() }
      return { body, headers: { 'content-type': 'text/event-stream' }, split: 'events', before: later }
    }
    const made = /resp_[\w-]+/.exec(url)?.[0] ?? `resp_${String(mark)}`
    if (url.startsWith('/v1/responses')) this.ids.push(made)
    return { body: { id: made, object: 'response', status: 'completed', mark, name }, before }
  }

  async send (origin: string, { caller, kind, id }: Ask): Promise<number> {
    const mark = `mark-${this.#sent.size}`
    const sent = { caller, from: this.done, by: null }
    this.#sent.set(mark, sent)
    const named = String(this.ids[id % this.ids.length])
    const headers = { authorization: `Bearer canary-${String(callers[caller])}`, 'content-type': 'application/json', 'x-mark': mark }
    const model = kind === 'routed' ? 'routed-m' : 'm'
    const chat = { model, messages: [{ role: 'user', content: 'x' }], ...kind === 'stream' && { stream: true } }
    const response = { model, input: 'x', ...kind === 'follow' && { previous_response_id: named } }
    const isChat = kind === 'chat' || kind === 'stream' || kind === 'routed'
    const reply = kind === 'fetch'
      ? await fetch(`${origin}/v1/responses/${named}`, { headers })
      : await fetch(`${origin}/v1/${isChat ? 'chat/completions' : 'responses'}`, {
        method: 'POST', headers, body: JSON.stringify(isChat ? chat : response),
      })
    this.#judge(mark, kind, reply.status, await reply.text())
    return reply.status
  }

  #judge (mark: string, kind: Ask['kind'], status: number, text: string): void {
    const { caller, from, by } = this.#sent.get(mark) ?? { caller: 0, from: 0, by: null }
    const told = `${mark}, begun under ${from}, got ${status} ${text}`
    const isRefused = text.includes('invalid_api_key')
    const groups = this.plans.slice(from).map(({ keys }) => keys[caller] ?? null)
    if (isRefused && !groups.includes(null)) this.wrong.push(`${told}: its key is good`)
    if (!isRefused && groups.every((group) => group === null)) this.wrong.push(`${told}: its key was taken away`)
    if (isRefused && by !== null) this.wrong.push(`${told}, though it went on`)
    if (text.includes('canary-')) this.wrong.push(`${told}: a secret`)
    if (/concurrency_exceeded|internal_error/.test(text)) this.wrong.push(told)
    if (isRefused) this.counts.refused += 1
    if (status !== 200) return
    this.counts[kind === 'stream' ? 'streamed' : 'answered'] += 1
    const isWhole = kind === 'stream' ? text.endsWith('data: [DONE]\n\n') : JSON.parse(text).mark === mark
    if (!isWhole) this.wrong.push(`${told}: not its own, or cut`)
  }
}
