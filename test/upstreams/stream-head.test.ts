import { existsSync, readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import t from 'tap'
import { endpoints } from '../../plugins/protocols/index.js'
import { EventHead } from '../../plugins/upstreams/stream-head.js'

function read (protocol: string, text: string | Buffer, size = Infinity): string {
  const head = new EventHead(endpoints.find((endpoint) => endpoint.id === protocol)?.usage ?? null)
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += Math.min(size, bytes.length)) {
    const told = head.push(bytes.subarray(at, at + Math.min(size, bytes.length)))
    if (told !== 'more') return told
  }
  return 'more'
}

const event = (
  data: unknown, name?: string
): string => `${name === undefined ? '' : `event: ${name}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
const delta = (fields: object, more: object = {}): string => event({ choices: [{ index: 0, delta: fields, ...more }] })

t.test('an error before the first content is told from content, however the bytes come', async (t) => {
  const created = event(
    { type: 'response.created', response: { error: null } }, 'response.created'
  ) + event({ type: 'response.in_progress' }, 'response.in_progress')
  const started = event({ type: 'message_start', message: {} }, 'message_start') + event({ type: 'ping' }, 'ping')
  const role = delta({ role: 'assistant', content: '', refusal: null, tool_calls: [] })
  const cases: ReadonlyArray<readonly [id: string, text: string, told: 'more' | 'pass' | 'failed']> = [
    ['responses', created, 'more'],
    ['responses', `: ${event({ error: { message: 'of a comment' } })}`, 'more'],
    ['responses', created + event({ type: 'error', code: 'server_is_overloaded' }, 'error'), 'failed'],
    ['responses', created + event({ type: 'response.failed' }), 'failed'],
    ['responses', created + event({ type: 'response.output_item.added' }), 'pass'],
    ['messages', started + event({ type: 'error', error: { type: 'overloaded_error' } }, 'error'), 'failed'],
    ['messages', started + event({ type: 'content_block_start' }), 'pass'],
    ['chat_completions', role, 'more'],
    ['chat_completions', event({ choices: [], prompt_filter_results: [] }) + role + event({ error: { message: 'overloaded' } }), 'failed'],
    ['chat_completions', role + delta({ content: 'H' }), 'pass'],
    ['chat_completions', role + delta({ tool_calls: [{ index: 0 }] }), 'pass'],
    ['chat_completions', role + delta({}, { finish_reason: 'stop' }), 'pass'],
    ['chat_completions', event({ id: 'x', choices: null }), 'more'],
    ['chat_completions', event({ choices: [null, 'x', { delta: [] }] }), 'more'],
    ['chat_completions', event('[DONE]'), 'pass'],
    ['chat_completions', event('[1]'), 'pass'],
    ['chat_completions', event({ choices: null, base_resp: { status_code: 1008 } }), 'failed'],
    ['chat_completions', event({ choices: null, base_resp: { status_code: 0 } }), 'more'],
    ['chat_completions', event({ choices: null, base_resp: { status_code: '0' } }), 'more'],
    ['chat_completions', role + event({ choices: [], x_groq: { error: 'over_capacity' } }), 'failed'],
    ['chat_completions', role + delta({}, { finish_reason: 'error', error: { code: 502 } }), 'failed'],
    ['chat_completions', event({ error: 'overloaded' }), 'failed'],
    ['chat_completions', event({ error: {}, choices: [] }), 'more'],
    ['responses', created + event({ type: 'response.completed', response: { error: { code: 'server_error' } } }), 'failed'],
    ['generate_content.streamGenerateContent', event({ error: { code: 503 } }), 'failed'],
    ['generate_content.streamGenerateContent', event({ modelVersion: 'x' }), 'more'],
    ['generate_content.streamGenerateContent', event({ candidates: [] }), 'pass'],
    ['generate_content.streamGenerateContent', event({ promptFeedback: {} }), 'pass'],
    ['images', event({ type: 'error' }), 'failed'],
    ['models', event({ type: 'error' }), 'failed'],
    ['models', event({ type: 'ping' }), 'pass'],
    ['images', event({ type: 'image_generation.partial_image' }), 'pass'],
    ['messages', ': comment\n\n\n\nretry: 5\n\n', 'more'],
    ['messages', '\uFEFFdata: {"type":\r\ndata:"error"}\r\n\r\n', 'failed'],
    ['messages', 'data: {"type":"ping"}\r\rdata: {"type":"error"}\r\r', 'failed'],
    ['messages', event('{not json'), 'pass'],
    ['messages', event({ type: 'ping', padding: 'x'.repeat(60_000) }) + event({ type: 'error' }), 'failed'],
  ]
  for (const [protocol, text, told] of cases) {
    t.equal(read(protocol, text), told, text.slice(0, 500))
    t.equal(read(protocol, text, 1), told, `${text.slice(0, 500)} byte by byte`)
  }
})

t.test('no more than 64 events or 64 KiB are held', async (t) => {
  t.equal(read('messages', event({ type: 'ping' }).repeat(63)), 'more')
  t.equal(read('messages', event({ type: 'ping' }).repeat(64)), 'pass')
  t.equal(read('messages', `: ${'x'.repeat(65_530)}`), 'more')
  t.equal(read('messages', `: ${'x'.repeat(65_534)}`), 'pass')
})

t.test('split anywhere, it tells the same', async () => {
  const text = Buffer.from(event({ type: 'message_start', message: { text: '世界' } }) + event({ type: 'error' }))
  fc.assert(fc.property(fc.integer({ min: 1, max: text.length }), (size) => read('messages', text, size) === 'failed'))
})

const recorded = new URL('../../../shared/corpus/', import.meta.url)

t.test('recorded streams of providers have content', { skip: existsSync(recorded) ? false : '../shared/corpus is not there' }, async (
  t
) => {
  for (const protocol of ['chat_completions', 'messages', 'responses'] as const) {
    const folder = new URL(`${protocol}/`, recorded)
    for (const name of readdirSync(folder).filter((file) => file.endsWith('.sse'))) {
      t.equal(read(protocol, readFileSync(new URL(name, folder)), 100), 'pass', name)
    }
  }
})
