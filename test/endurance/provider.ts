/** A provider that keeps count: what it reported for each request, by the tag that the caller gave it. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'

export interface Provider {
  readonly url: string
  /** Tokens by tag, from the moment at which the reply is begun. */
  readonly reported: ReadonlyMap<string, number>
  /** How often each tag came: more than once is a request that somebody sent twice. */
  readonly seen: ReadonlyMap<string, number>
  readonly close: () => Promise<void>
}

export interface ProviderOptions {
  /** Before the reply is begun, and between the events of a stream. */
  readonly delayMs?: (tag: string) => number
  /** Of the prompt and of the answer. Default: something else for each tag. */
  readonly usage?: (tag: string, maxTokens: number, bodyBytes: number) => readonly [number, number]
}

const events = 4

/** Some 3 to 60 tokens, always the same for one tag. */
function usual (tag: string): readonly [number, number] {
  const n = [...tag].reduce((sum, char) => (sum * 31 + char.charCodeAt(0)) % 9_973, 7)
  return [1 + n % 29, 2 + n % 31]
}

export async function startProvider ({ delayMs = () => 0, usage = usual }: ProviderOptions = {}): Promise<Provider> {
  const reported = new Map<string, number>()
  const seen = new Map<string, number>()
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy())
  })
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { user: tag, stream, max_tokens: maxTokens }: Record<string, unknown> = Object(await json(request))
    const name = String(tag)
    seen.set(name, (seen.get(name) ?? 0) + 1)
    const [input, output] = usage(name, Number(maxTokens), Number(request.headers['content-length']))
    await pause(delayMs(name), undefined, { ref: false })
    reported.set(name, input + output)
    const counts = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
    if (stream === true) await streamed(response, counts, name)
    else whole(response, counts)
  }
  const streamed = async (response: ServerResponse, counts: object, tag: string): Promise<void> => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (let i = 0; i < events; i += 1) {
      response.write(`data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta: { content: 'word ' }, finish_reason: null }] })}\n\n`)
      await pause(delayMs(tag), undefined, { ref: false })
    }
    response.end(`data: ${JSON.stringify({ ...head, choices: [], usage: counts })}\n\ndata: [DONE]\n\n`)
  }
  server.listen(0, '127.0.0.1', 4_096)
  await once(server, 'listening')
  const { port } = Object(server.address())
  return {
    url: `http://127.0.0.1:${port}`,
    reported,
    seen,
    close: async () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm' }

function whole (response: ServerResponse, usage: object): void {
  const message = { role: 'assistant', content: 'words' }
  const body = JSON.stringify({ ...head, object: 'chat.completion', choices: [{ index: 0, message, finish_reason: 'stop' }], usage })
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }).end(body)
}
