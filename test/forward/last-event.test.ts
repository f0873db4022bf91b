import t from 'tap'
import { gatewayError } from '../../plugins/core/errors/gateway-error.js'
import type { ReplyTap, StreamFacts } from '../../plugins/core/types.js'
import { lastEvent } from '../../plugins/forward/broken-reply.js'
import { requestFor, tapOn } from '../usage/meter-reply.js'

const untold = { id: null, model: null, createdAt: null, sequence: null }

function eventOf (endpoint: string, told: StreamFacts | null): { event: string | null, data: Record<string, unknown> } {
  const llm = requestFor(endpoint)
  const tap: ReplyTap | null = told === null ? null : Object.defineProperty(tapOn(llm).tap, 'streamFacts', { value: told })
  const text = lastEvent(llm, gatewayError('upstream_aborted'), tap).toString()
  const [, event = null, data = ''] = /^(?:event: (\S+)\n)?data: (.*)\n\n(?:: Connection error: [^\n]*)?$/.exec(text) ?? []
  return { event, data: JSON.parse(data) }
}

const error = {
  message: 'Connection error: the model provider broke off its reply.', type: 'server_error', param: null, code: 'upstream_aborted',
}

t.test('a response that broke off goes on from what it told', async (t) => {
  const told = { id: 'resp_1', model: 'm-1', createdAt: 1_767_225_600, sequence: 7 }
  t.match(eventOf('responses', told), {
    event: 'response.failed',
    data: {
      type: 'response.failed',
      sequence_number: 8,
      response: {
        id: 'resp_1',
        object: 'response',
        created_at: 1_767_225_600,
        model: 'm-1',
        status: 'failed',
        output: [],
        error: { code: 'upstream_aborted', message: error.message },
      },
      error,
    },
  })
})

t.test('one that told nothing, or that nobody read, has every field all the same', async (t) => {
  for (const told of [untold, null]) {
    t.match(eventOf('responses', told).data, {
      sequence_number: 0,
      response: { id: /^.{36}$/, created_at: Number, model: '', output: [], error: { code: 'upstream_aborted' } },
      error,
    })
  }
})

t.test('a chat that broke off has the identity of its chunks, and no choices', async (t) => {
  t.strictSame(eventOf('chat_completions', { id: 'c', model: 'm', createdAt: 1, sequence: null }), {
    event: null, data: { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', error },
  })
  t.strictSame(eventOf('chat_completions', untold).data, { error })
})

t.test('the error stands first in it, where go-openai looks for it', async (t) => {
  const streamFacts = { id: 'c', model: 'm', createdAt: 1, sequence: null }
  const text = requestFor('chat_completions').endpoint.streamError(gatewayError('upstream_aborted').facts('r'), streamFacts)
  t.match(text, /^data:\s*{"error":/)
})

t.test('the others tell it in their envelope', async (t) => {
  t.match(eventOf('messages', null), { event: 'error', data: { type: 'error', error: { type: 'api_error' } } })
  t.match(eventOf('generate_content', null), { event: null, data: { error: { code: 502, status: 'INTERNAL' } } })
})

t.test('a stream of Gemini\'s ends in a comment without an end, on which clients fail that read no error', async (t) => {
  const text = requestFor('generate_content').endpoint.streamError(gatewayError('upstream_aborted').facts('r'), untold)
  t.match(text, /^data: {"error":.*}\n\n: Connection error: the model provider broke off its reply\.$/)
  for (const endpoint of ['chat_completions', 'responses', 'messages']) {
    t.match(requestFor(endpoint).endpoint.streamError(gatewayError('upstream_aborted').facts('r'), untold), /\n\n$/, endpoint)
  }
})
