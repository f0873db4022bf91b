import t from 'tap'
import type { TokenUsage } from '../../plugins/core/types.js'
import { totalTokens } from '../../plugins/core/call/measures.js'
import { addCounted, type Counted } from '../../plugins/usage/count-tokens.js'
import { meter } from './meter-reply.js'

/** Each leaf a digit of its own. */
const digits: TokenUsage = {
  input: 1,
  cache_read: 10,
  cache_write_5m: 100,
  cache_write_1h: 1_000,
  cache_write: 10_000,
  tool_input: 100_000,
  output: 1_000_000,
  reasoning: 10_000_000,
}
const twice = Object.fromEntries(Object.entries(digits).map(([leaf, tokens]) => [leaf, 2 * tokens]))

t.test('the total has every leaf once', async (t) => {
  t.equal(totalTokens(digits), 11_111_111)
})

t.test('two parts of one work have the leaves of both, and a contradiction in either', async (t) => {
  const counted = (inconsistent: boolean, modality: string): Counted =>
    ({ usage: digits, modalities: [{ direction: 'input', modality, tokens: 1 }], inconsistent })
  const both = addCounted(counted(false, 'text'), counted(false, 'image'))
  t.strictSame(both.usage, twice)
  t.strictSame(both.modalities.map(({ modality }) => modality), ['text', 'image'])
  t.equal(both.inconsistent, false)
  t.equal(addCounted(counted(true, 'text'), counted(false, 'text')).inconsistent, true)
  t.equal(addCounted(counted(false, 'text'), counted(true, 'text')).inconsistent, true)
})

function streamed (protocol: string, ...usages: object[]): ReturnType<typeof meter>['llm']['usage'] {
  const events = usages.map((usage) => `data: ${JSON.stringify({ type: 'message_delta', usage })}\n\n`)
  return meter(protocol, [Buffer.from(events.join(''))]).llm.usage
}

t.test('a smaller total of cache writes is split into whole tokens, and none is lost', async (t) => {
  const split = { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 12 }
  const { tokens, inconsistent } = streamed('messages', { cache_creation: split }, { cache_creation_input_tokens: 10 })
  t.match(tokens, { cache_write_5m: 6, cache_write_1h: 4, cache_write: 0 })
  t.equal(inconsistent, true)
})

t.test('more cached tokens than there are contradict the rest, without a total, too', async (t) => {
  const { tokens, inconsistent } = streamed('chat_completions', { prompt_tokens: 5, prompt_tokens_details: { cached_tokens: 9 } })
  t.match(tokens, { input: 0, cache_read: 9 })
  t.equal(inconsistent, true)
})

t.test('a part that is an object in one event and none in another is the newer one', async (t) => {
  const object = { prompt_tokens: 9, prompt_tokens_details: { cached_tokens: 4 } }
  for (const odd of ['text', 7, true, [1, 2]]) {
    const plain = { prompt_tokens: 9, prompt_tokens_details: odd }
    t.match(streamed('chat_completions', object, plain).tokens, { input: 9, cache_read: 0 }, JSON.stringify(odd))
    t.match(streamed('chat_completions', plain, object).tokens, { input: 5, cache_read: 4 }, JSON.stringify(odd))
  }
})

t.test('what was read for searches is outside of a total of input and output alone, and the reasoning with it', async (t) => {
  const usage = { prompt_tokens: 10, completion_tokens: 50 }
  const cases: ReadonlyArray<readonly [told: object, leaves: readonly [toolInput: number, output: number, reasoning: number]]> = [
    [{ total_tokens: 60, citation_tokens: 0, reasoning_tokens: 40 }, [0, 10, 40]],
    [{ citation_tokens: 0, reasoning_tokens: 40 }, [0, 10, 40]],
    [{ total_tokens: 60, citation_tokens: 7, reasoning_tokens: 400 }, [7, 50, 400]],
    [{ citation_tokens: 7, reasoning_tokens: 400 }, [7, 50, 400]],
    [{ total_tokens: 60, citation_tokens: 7 }, [7, 50, 0]],
    [{ total_tokens: 467, citation_tokens: 7, reasoning_tokens: 400 }, [7, 50, 400]],
    [{ total_tokens: 67, citation_tokens: 7, reasoning_tokens: 40 }, [7, 10, 40]],
  ]
  for (const [told, [toolInput, output, reasoning]] of cases) {
    const { tokens, inconsistent } = streamed('chat_completions', { ...usage, ...told })
    t.match(tokens, { input: 10, tool_input: toolInput, output, reasoning }, JSON.stringify(told))
    t.equal(inconsistent, false, JSON.stringify(told))
  }
})

t.test('which kind of input came from a cache is told in lists and fields, by kinds that are listed twice, and of tools', async (t) => {
  const gemini = (usageMetadata: object): unknown =>
    meter('generate_content', [Buffer.from(JSON.stringify({ usageMetadata }))]).llm.usage.modalities
  const [audio, text] = [{ modality: 'AUDIO', tokenCount: 400 }, { modality: 'TEXT', tokenCount: 200 }]
  const whole = { promptTokenCount: 1_000, cachedContentTokenCount: 600, promptTokensDetails: [audio, text, audio] }
  const kinds = (...cached: Array<number | undefined>): object[] => ['audio', 'text', 'audio'].map((modality, at) => {
    const tokens = modality === 'audio' ? 400 : 200
    return { direction: 'input', modality, tokens, ...cached[at] !== undefined && { cached: cached[at] } }
  })
  for (const [told, ...cached] of [
    [[{ modality: 'AUDIO', tokenCount: 600 }], 600, 0, 0],
    [[audio, { modality: 'AUDIO', tokenCount: 100 }, { modality: 4, tokenCount: 50 }], 550, 0, 0],
    [[{ modality: 'TEXT', tokenCount: 600 }], 0, 600, 0],
    [[]], [[{ modality: 'AUDIO', tokenCount: -1 }, { tokenCount: 5 }]], [null], [7],
  ] as const) t.strictSame(gemini({ ...whole, cacheTokensDetails: told }), kinds(...cached), JSON.stringify(told))
  const { cachedContentTokenCount: _, ...uncounted } = whole
  t.strictSame(gemini({ ...uncounted, cacheTokensDetails: [audio] }), kinds(), 'whose number is not told')
  const events = [{ ...whole, cacheTokensDetails: [audio] }, whole]
    .map((usageMetadata) => `data: ${JSON.stringify({ usageMetadata })}\n\n`)
  const stream = meter('generate_content', [Buffer.from(events.join(''))])
  t.strictSame(stream.llm.usage.modalities, kinds(400, 0, 0), 'in an earlier event')
  const split = { audio_tokens: 7, text_tokens: 3, cached_tokens: 5, cached_tokens_details: { audio_tokens: 5 } }
  for (const [protocol, usage] of [
    ['chat_completions', { prompt_tokens: 10, prompt_tokens_details: split }],
    ['responses', { input_tokens: 10, input_tokens_details: split }],
  ] as const) {
    const { modalities } = meter(protocol, [Buffer.from(JSON.stringify({ usage }))]).llm.usage
    t.match(modalities, [{ modality: 'text', cached: 0 }, { modality: 'audio', cached: 5 }], protocol)
  }
  const drawn = {
    input_tokens: 50,
    input_tokens_details: { image_tokens: 40, text_tokens: 10 },
    output_tokens: 100,
    cached_tokens: 30,
    cached_tokens_details: { cached_image_tokens: 25, cached_text_tokens: 5 },
  }
  const usage = { input_tokens: 3, output_tokens: 2, input_tokens_details: { text_tokens: 3 } }
  t.match(meter('responses', [Buffer.from(JSON.stringify({ usage, tool_usage: { image_gen: drawn } }))]).llm.usage, {
    tokens: { input: 23, cache_read: 30 },
    modalities: [{ tokens: 3 }, { modality: 'text', cached: 5 }, { modality: 'image', cached: 25 }],
    served: { tools: { modalities: [{ modality: 'text', cached: 5 }, { modality: 'image', cached: 25 }] } },
  })
})
