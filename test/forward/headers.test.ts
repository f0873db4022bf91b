import t from 'tap'
import { replyHeaders } from '../../plugins/forward/reply-headers.js'
import { addOwnHeaders } from '../../plugins/forward/request-headers.js'
import { createResolve } from '../../plugins/paths/resolve.js'
import { LlmRequest } from '../../plugins/request.js'

function request (): LlmRequest {
  const resolved = createResolve('')('POST', '/v1/chat/completions', {})
  if (resolved?.kind !== 'endpoint') throw new Error('not resolved')
  return new LlmRequest(resolved)
}

t.test('exactly one trace context goes upstream: ours where a span is active, the caller\'s otherwise', async (t) => {
  const caller = { traceparent: '00-caller', tracestate: 'a=b' }
  const llm = request()
  t.match(addOwnHeaders({ ...caller }, llm, null), caller)
  llm.traceHeaders = { traceparent: '00-ours' }
  t.strictSame(addOwnHeaders({ ...caller }, llm, null), { traceparent: '00-ours' })
})

t.test('a reply without hop-by-hop headers keeps all it has, and gets ids', async (t) => {
  const llm = request()
  t.strictSame(replyHeaders({ 'content-length': '3', 'x-a': ['1', '2'] }, llm), { 'content-length': '3', 'x-a': ['1', '2'], 'x-request-id': llm.id, 'request-id': llm.id })
  t.equal(llm.upstreamRequestId, null)
  t.match(replyHeaders({ 'request-id': 'up' }, llm), { 'x-request-id': 'up', 'request-id': 'up' })
  t.equal(llm.upstreamRequestId, 'up')
  llm.outgoing = Buffer.from('{}')
  t.equal(replyHeaders({ 'content-length': '3' }, llm)['content-length'], undefined)
})
