import t from 'tap'
import { inputEstimate, outputBound } from '../../plugins/limits/estimate.js'
import type { ModelCall } from '../../plugins/core/call/model-call.js'
import { callOf } from './setup.js'

t.test('a request may use its own tokens and the output that it asks for, within bounds', async (t) => {
  const sizes = { maxInputTokens: 10, otherOutput: 70, outputByModel: new Map([['m', 50]]) }
  t.equal(inputEstimate(callOf('messages'), undefined, sizes), 0)
  t.equal(inputEstimate(callOf('messages'), '9', sizes), 3, 'by its declared length where nobody read it')
  t.equal(inputEstimate(callOf('messages', { body: { bytes: Buffer.alloc(5) } }), '900', sizes), 2)
  t.equal(inputEstimate(callOf('messages', { body: { bytes: Buffer.alloc(500) } }), '500', sizes), 10)
  const gemini = (config: object, name = 'generationConfig'): ModelCall => {
    return callOf('generate_content.generateContent', { body: { json: { [name]: config } } })
  }
  const cases: ReadonlyArray<readonly [ModelCall, number]> = [
    [callOf('embeddings'), 0],
    [callOf('messages'), 50],
    [callOf('messages', { model: null }), 70],
    [callOf('chat_completions', { body: { json: { max_tokens: 60 }, substitutes: ['m', 'other'] } }), 60],
    [callOf('chat_completions', { model: 'other', body: { substitutes: ['m'] } }), 70],
    [callOf('messages', { body: { json: { max_tokens: 3 } } }), 3],
    [callOf('messages', { body: { json: { max_tokens: 500 } } }), 50],
    [callOf('messages', { body: { json: [3] } }), 50],
    [callOf('messages', { body: { json: { max_tokens: -3 } } }), 50],
    [callOf('messages', { body: { json: { max_tokens: 1.5 } } }), 50],
    [callOf('responses', { body: { json: { max_output_tokens: 4 } } }), 4],
    [callOf('responses.compact', { body: { json: { max_output_tokens: 4 } } }), 4],
    [callOf('images', { body: { json: { n: 2 } } }), 100],
    [callOf('chat_completions', { body: { json: { max_tokens: 2, n: 1e9 } } }), 256],
    [callOf('chat_completions', { model: 'm', body: { json: { max_tokens: 2, max_completion_tokens: 2 ** 53 } } }), 50],
    [callOf('chat_completions', { model: 'm', body: { json: { max_tokens: 2, max_completion_tokens: -1 } } }), 50],
    [callOf('chat_completions', { body: { json: { max_tokens: 2, max_completion_tokens: 0, n: -1 } } }), 2],
    [callOf('chat_completions', { body: { json: { max_tokens: 2, n: 2 ** 53 } } }), 256],
    [gemini({ maxOutputTokens: 7, candidateCount: Infinity }), 896],
    [gemini({ maxOutputTokens: 7, candidateCount: 2 }), 14],
    [gemini({ max_output_tokens: 7 }), 7],
    [gemini({ max_output_tokens: 7, candidate_count: 2 }, 'generation_config'), 14],
    [gemini({ maxOutputTokens: 1, max_output_tokens: 7, candidateCount: 1, candidate_count: 3 }), 21],
    [gemini({ maxOutputTokens: '7', candidateCount: '2' }), 14],
    [gemini({ maxOutputTokens: 'seven', candidateCount: '' }), 50],
    [gemini({ maxOutputTokens: '7', candidateCount: { toString: null } }), 7],
  ]
  for (const [llm, output] of cases) t.equal(outputBound(llm, sizes), output)
})
