/** Checks 112-114: how failed streams end, as the clients of each protocol read it. */
import { expect, expectStatus, fieldsOf, isText, type Check } from '../check.js'
import { everyFamily } from '../needs.js'
import { chatChunk, event, messageStart, responseEvent, sse } from '../replies.js'
import { eventsOf, type Reply } from '../wire.js'
import { cutOff, playEach, whole, type StreamKind } from './stream-cases.js'

const failed = { type: 'server_error', code: 'server_error', message: 'it broke', param: null }
const failedResponse = { id: 'r1', object: 'response', status: 'failed', error: { code: 'server_error', message: 'it broke' }, output: [] }

/** What each provider writes into a stream that fails. */
const failures: Readonly<Record<StreamKind, readonly string[]>> = {
  chat: [chatChunk('Hi'), event({ error: failed })],
  responses: [
    responseEvent('response.created', null),
    event({ type: 'response.failed', sequence_number: 1, response: failedResponse }),
  ],
  messages: [
    messageStart({ input_tokens: 1, output_tokens: 1 }),
    event({ type: 'error', error: { type: 'api_error', message: 'it broke' } }),
  ],
  gemini: [event({ candidates: [] }), event({ error: { code: 500, message: 'it broke', status: 'INTERNAL' } })],
}

/** What clients of the protocol, in any language, recognise as a failure with a message. */
const readable: Readonly<Record<StreamKind, (event: Readonly<Record<string, unknown>>, name: string) => boolean>> = {
  chat: ({ error }) => isText(fieldsOf(error).message),
  responses: ({ type, response, error, message }, name) => {
    if (type === 'response.failed') return name === type && isText(fieldsOf(fieldsOf(response).error).message)
    return type === 'error' && name === type && (isText(message) || isText(fieldsOf(error).message))
  },
  messages: ({ type, error }, name) => {
    return type === 'error' && name === type && isText(fieldsOf(error).type) && isText(fieldsOf(error).message)
  },
  gemini: ({ error }, name) => {
    const { code, message, status } = fieldsOf(error)
    return name === '' && Number.isInteger(code) && isText(message) && isText(status)
  },
}

/** Name and data of the last event; a `[DONE]` after it is the end of the stream. */
function lastEvent ({ text }: Reply): { readonly name: string, readonly data: string } {
  const blocks = text.split(/\r\n\r\n|\n\n|\r\r/).filter((block) => /^data:/m.test(block) && !/^data: ?\[DONE\]/m.test(block))
  const last = blocks.at(-1) ?? ''
  return { name: /^event: ?(.*?)\r?$/m.exec(last)?.[1] ?? '', data: eventsOf(last)[0] ?? '' }
}

function told (kind: StreamKind, reply: Reply): boolean {
  const { name, data } = lastEvent(reply)
  try {
    return readable[kind](fieldsOf(JSON.parse(data)), name)
  } catch {
    return false
  }
}

export const endings: readonly Check[] = [
  {
    number: 112,
    title: 'a stream that ends without its last event does not look like a whole one',
    needs: [...everyFamily, 'far side'],
    async run (subject) {
      const kinds = await playEach(subject, (kind) => sse(...whole[kind].slice(0, 1)), (kind, reply) => {
        expectStatus(reply, 200, kind)
        expect(!reply.clean || told(kind, reply), `${kind}: a clean end after ${lastEvent(reply).data.slice(0, 80)}`)
        return kind
      })
      return `told for ${kinds}`
    },
  },
  {
    number: 113,
    title: 'an error event of the far side arrives as it was sent, as the last one',
    needs: [...everyFamily, 'far side'],
    async run (subject) {
      const kinds = await playEach(subject, (kind) => sse(...failures[kind]), (kind, reply) => {
        const sent = eventsOf(String(failures[kind].at(-1)))[0]
        expect(lastEvent(reply).data === sent, `${kind}: status ${reply.status}, the last event is ${lastEvent(reply).data.slice(0, 100)}`)
        return kind
      })
      return `passed for ${kinds}`
    },
  },
  {
    number: 114,
    title: 'a gateway that tells a break by an event tells it so that clients read it',
    needs: [...everyFamily, 'far side'],
    async run (subject) {
      return await playEach(subject, cutOff, (kind, reply) => {
        expectStatus(reply, 200, kind)
        expect(!reply.clean || told(kind, reply), `${kind}: ${lastEvent(reply).name} ${lastEvent(reply).data.slice(0, 100)}`)
        return `${kind}: ${told(kind, reply) ? 'event' : 'socket cut'}`
      })
    },
  },
]
