import t from 'tap'
import { ask, inOrder, seenBy, startPool } from './pool-gateway.js'

const chat = { model: 'gpt-5', messages: [{ role: 'user', content: 'Hi' }] }

t.test('a caller whose words are repeated to it takes no member from the others', async (t) => {
  const gateway = await startPool(t, { rules: inOrder })
  const [first] = gateway.members
  if (first === undefined) throw new Error('no members')
  const beta = 'your credit balance is too low'
  const refusal = { error: { type: 'invalid_request_error', message: `Unexpected value(s) ${beta} for the header` } }
  first.respond = ({ headers }) => headers['openai-beta'] === undefined ? null : { status: 400, body: refusal }
  t.equal((await ask(gateway, chat, { 'openai-beta': beta })).status, 400)
  t.equal((await ask(gateway, chat)).status, 200)
  t.strictSame(seenBy(gateway), [2, 0])
})

t.test('an organisation that a caller is not of takes no member from the others', async (t) => {
  const gateway = await startPool(t, { rules: inOrder })
  const [first] = gateway.members
  if (first === undefined) throw new Error('no members')
  const refusal = { error: { type: 'invalid_request_error', param: null, code: 'mismatched_organization' } }
  first.respond = ({ headers }) => headers['openai-organization'] === undefined ? null : { status: 401, body: refusal }
  t.equal((await ask(gateway, chat, { 'openai-organization': 'org-other' })).status, 401)
  t.equal((await ask(gateway, chat)).status, 200)
  t.strictSame(seenBy(gateway), [2, 0])
})

t.test('a caller that names another payer takes no member from the others, if the upstream names none', async (t) => {
  const error = { type: 'permission_error', message: 'not authorized' }
  for (const [status, name, own, seen] of [
    [403, 'anthropic-workspace-id', {}, [2, 1]],
    [403, 'x-hf-bill-to', {}, [2, 1]],
    [402, 'x-hf-bill-to', {}, [2, 1]],
    [401, 'x-hf-bill-to', {}, [1, 2]],
    [403, 'x-hf-bill-to', { 'x-hf-bill-to': 'us' }, [1, 2]],
  ] as const) {
    const gateway = await startPool(t, { rules: inOrder, upstreams: [{ headers: own }] })
    gateway.members[0]?.queue({ status, body: { type: 'error', error } })
    t.equal((await ask(gateway, chat, { [name]: 'other' })).status, 200)
    t.equal((await ask(gateway, chat)).status, 200)
    t.strictSame(seenBy(gateway), seen, `${name} ${status}`)
  }
})

t.test('what a provider will not answer of one caller takes no member from the others', async (t) => {
  const refusals: ReadonlyArray<readonly [status: number, error: object | string]> = [
    [401, { code: 'invalid_organization' }],
    [403, 'Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO'],
    [403, { code: 403, message: 'Your input was flagged', metadata: { reasons: ['violence'], flagged_input: 'x' } }],
  ]
  for (const [status, error] of refusals) {
    const gateway = await startPool(t, { rules: inOrder })
    gateway.members[0]?.queue({ status, body: { error } })
    t.equal((await ask(gateway)).status, status)
    t.equal((await ask(gateway)).status, 200)
    t.strictSame(seenBy(gateway), [2, 0])
  }
})

t.test('a request that is too large for an account goes to another one, and keeps it from nobody', async (t) => {
  const upstreams = [{ account: 'one' }, { account: 'one' }, { account: 'two' }]
  const gateway = await startPool(t, { rules: inOrder, members: 3, upstreams })
  const message = 'Request too large for gpt-5 in organization org-x on tokens per min (TPM): Limit 9, Requested 10.'
  gateway.members[0]?.queue({ status: 429, body: { error: { message } } })
  t.equal((await ask(gateway)).status, 200)
  t.equal((await ask(gateway)).status, 200)
  t.strictSame(seenBy(gateway), [2, 0, 1])
})

t.test('so does one that costs more than an account has left', async (t) => {
  const gateway = await startPool(t, { rules: inOrder })
  const message = 'This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 30104.'
  gateway.members[0]?.queue({ status: 402, body: { error: { message, code: 402 } } })
  t.equal((await ask(gateway)).status, 200)
  t.equal((await ask(gateway)).status, 200)
  t.strictSame(seenBy(gateway), [2, 1])
})

t.test('a caller whose own secret is refused takes no member from the others', async (t) => {
  const gateway = await startPool(t, { rules: inOrder, upstreams: [{ credential: 'forward' }, { credential: 'forward' }] })
  gateway.members[0]?.queue({ status: 401, body: { error: { message: 'Incorrect API key provided' } } })
  t.equal((await ask(gateway)).status, 401)
  t.equal((await ask(gateway)).status, 200)
  t.strictSame(seenBy(gateway), [2, 0])
})
