import t from 'tap'
import { conversationOf } from '../../plugins/upstreams/affinity-key.js'

t.test('the conversation is told by the first of what clients send', async (t) => {
  const session = '0f8fad5b-d9cb-469f-a165-70867728950e'
  const cases: ReadonlyArray<readonly [headers: Record<string, unknown>, json: unknown, id: string | null]> = [
    [{ 'x-claude-code-session-id': 'a', 'session-id': 'b' }, { prompt_cache_key: 'c' }, 'a'],
    [{ 'session-id': 'b' }, { metadata: { user_id: `user_1_account_2_session_${session}` } }, session],
    [{}, { metadata: { user_id: JSON.stringify({ device_id: 'd', session_id: session }) } }, session],
    [{}, { metadata: { user_id: 'a person' }, prompt_cache_key: 'c' }, 'c'],
    [{ session_id: 'b' }, null, 'b'],
    [{ 'x-session-id': 'x' }, { prompt_cache_key: 'c' }, 'x'],
    [{ 'x-session-affinity': 'x' }, {}, 'x'],
    [{}, { prompt_cache_key: 'c', previous_response_id: 'resp_1' }, 'c'],
    [{}, { previous_response_id: 'resp_1' }, 'resp_1'],
    [{ 'session-id': '' }, { prompt_cache_key: 7, metadata: 'x' }, null],
    [{ 'session-id': 'x'.repeat(256) }, undefined, null],
    [{}, { user: 'person', safety_identifier: 'person', system: [{ text: 'x-anthropic-billing-header: cch=1' }] }, null],
    [{}, [], null],
  ]
  for (const [headers, json, id] of cases) t.equal(conversationOf(headers, json), id, JSON.stringify([headers, json]).slice(0, 80))
})
