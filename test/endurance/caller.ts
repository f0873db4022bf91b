/** A caller of chats, each with a tag by which the provider and the caller mean the same request. */
import { Agent, request } from 'undici'

export interface Answer {
  readonly tag: string
  /** 0 where the connection broke before a reply. */
  readonly status: number
  /** The whole reply was read: this request is acknowledged to its caller. */
  readonly whole: boolean
  /** The gateway's id of the request, empty where there was no reply. */
  readonly id: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Whole, or as far as it came. */
  readonly text: string
  /** The reply's text where it is a refusal or a failure. */
  readonly error: string
  /** When it began, by `performance.now()`. */
  readonly startedAt: number
  readonly ms: number
}

export interface Chat {
  readonly secret: string
  readonly tag: string
  readonly stream?: boolean
  readonly maxTokens?: number
}

const tagLength = 24

/** Always as long, whatever the tag: what is held for a request's input goes by its size. */
export function bodyOf ({ tag, stream = false, maxTokens = 64 }: Chat): string {
  const content = '.'.repeat(tagLength - tag.length + (stream ? 1 : 0))
  return JSON.stringify({ model: 'm', user: tag, stream, max_tokens: maxTokens, messages: [{ role: 'user', content }] })
}

/** Charged for a request whose fate nobody knows: the estimate of its input. */
export const floorTokens = Math.ceil(bodyOf({ secret: '', tag: '' }).length / 4)

/** Connections are kept and shared; `connections` of them to each origin. */
export function createCaller (connections: number): { call: (origin: string, chat: Chat) => Promise<Answer>, close: () => Promise<void> } {
  const dispatcher = new Agent({ connections, pipelining: 1 })
  return {
    call: async (origin, chat) => {
      const startedAt = performance.now()
      let status = 0
      let headers: Answer['headers'] = {}
      const answer = (whole: boolean, error: string, text = ''): Answer => {
        return {
          tag: chat.tag,
          status,
          whole,
          headers,
          text,
          error,
          id: String(headers['x-request-id'] ?? ''),
          startedAt,
          ms: performance.now() - startedAt,
        }
      }
      try {
        const reply = await request(`${origin}/v1/chat/completions`, {
          method: 'POST',
          dispatcher,
          headers: { authorization: `Bearer ${chat.secret}`, 'content-type': 'application/json' },
          body: bodyOf(chat),
        })
        status = reply.statusCode
        headers = reply.headers
        const text = await reply.body.text()
        return answer(chat.stream !== true || status !== 200 || text.endsWith('data: [DONE]\n\n'), status === 200 ? '' : text, text)
      } catch (error) {
        return answer(false, String(error))
      }
    },
    close: async () => await dispatcher.destroy(),
  }
}

/** Runs `step` for 0 to `count` - 1, `atOnce` of them at any time. */
export async function inParallel<T> (count: number, atOnce: number, step: (i: number) => Promise<T>): Promise<T[]> {
  const results: T[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) {
      const i = next
      next += 1
      results[i] = await step(i)
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, worker))
  return results
}
