/** Checks 61-65 and 101-105: failures of the far side, and what must never reach it. */
import { arrivalOr, expect, expectEnvelope, expectStatus, type Check } from '../check.js'
import { NotApplicable } from '../endpoints.js'
import { everyFamily } from '../needs.js'
import { json } from '../replies.js'
import { kindOfEach } from '../subject.js'

const rateLimit = { error: { message: 'slow down', type: 'rate_limit_error', param: null, code: 'rate_limit_exceeded' } }
const overloaded = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' }, request_id: 'req_1' }

export const errors: readonly Check[] = [
  {
    number: 61,
    title: '429 of the far side: retry-after and retry-after-ms pass',
    needs: ['openai', 'far side'],
    async run ({ ask, far }) {
      far.play({ ...json(rateLimit, 429), headers: { 'retry-after': '7', 'retry-after-ms': '6500' } })
      const reply = await ask('chat')
      expectStatus(reply, 429)
      const { 'retry-after': seconds, 'retry-after-ms': ms } = reply.headers
      expect(seconds === '7' && ms === '6500', `retry-after ${seconds}, retry-after-ms ${ms}`)
      expect(reply.text === JSON.stringify(rateLimit), `body changed: ${reply.text}`)
      return '429 with both headers and its body'
    },
  },
  {
    number: 62,
    title: 'request ids on errors: the far side\'s, or one of our own',
    needs: ['openai', 'far side'],
    async run ({ ask, far }) {
      far.play({ ...json(rateLimit, 400), headers: { 'x-request-id': 'far-1', 'request-id': 'far-1' } })
      const passed = await ask('chat')
      expect(
        passed.headers['x-request-id'] === 'far-1' && passed.headers['request-id'] === 'far-1',
        `x-request-id ${passed.headers['x-request-id']}`
      )
      const own = await ask('chat', { headers: { authorization: undefined } })
      expectStatus(own, 401, 'without a key')
      expect(own.headers['x-request-id'] !== undefined && own.headers['request-id'] !== undefined, 'no request id on our own 401')
      return `far-1, ${String(own.headers['x-request-id'])}`
    },
  },
  {
    number: 63,
    title: '529 passes as it is',
    needs: ['anthropic', 'far side'],
    async run ({ ask, far }) {
      far.play(json(overloaded, 529))
      const reply = await ask('messages')
      expectStatus(reply, 529)
      expect(reply.text === JSON.stringify(overloaded), `body changed: ${reply.text}`)
      return '529 with its body'
    },
  },
  {
    number: 64,
    title: 'an HTML 502 becomes an envelope',
    needs: ['anthropic', 'far side'],
    async run ({ ask, far }) {
      far.play({ status: 502, headers: { 'content-type': 'text/html' }, pieces: ['<html><h1>502 Bad Gateway</h1>10.0.0.7</html>'] })
      const error = expectEnvelope(await ask('messages'), 'anthropic', 502)
      return String(error.message)
    },
  },
  {
    number: 65,
    title: 'a spent balance: code insufficient_quota, not to be retried',
    needs: ['spent key'],
    async run ({ ask, options }) {
      const reply = await ask('chat', { headers: { authorization: `Bearer ${options.spentKey}` } })
      expect([402, 403, 429].includes(reply.status), `status ${reply.status}`)
      const error = expectEnvelope(reply, 'openai', reply.status)
      expect(error.code === 'insufficient_quota', `code ${String(error.code)}`)
      expect(reply.headers['x-should-retry'] === 'false', 'no x-should-retry: false')
      return `${reply.status} insufficient_quota`
    },
  },
  {
    number: 101,
    title: 'errors of the far side pass byte for byte',
    needs: [...everyFamily, 'far side'],
    async run ({ ask, far }) {
      for (const kind of kindOfEach) {
        for (const status of [400, 401, 403, 404, 413, 500, 503]) {
          const body = `{"error": {"status":${status},  "odd" : "\\u00e9"}}\n`
          far.play({ status, pieces: [body] })
          const reply = await ask(kind)
          expectStatus(reply, status, kind)
          expect(reply.text === body, `${kind} ${status}: ${reply.text}`)
        }
      }
      return '7 statuses of 3 families'
    },
  },
  {
    number: 102,
    title: 'a caller that leaves cancels the request at the far side',
    needs: ['openai', 'far side'],
    async run ({ ask, far }) {
      far.play({ pieces: ['{"id":"c1",'], before: () => new Promise(() => {}) })
      const caller = new AbortController()
      const arrival = far.arrival()
      const left = ask('chat', { signal: caller.signal }).catch((error: unknown) => {
        if (error instanceof NotApplicable) throw error
        return null
      })
      const { over } = await arrivalOr(arrival, left)
      caller.abort()
      await Promise.all([over, left])
      return 'cancelled'
    },
  },
  {
    number: 103,
    title: 'a far side that resets: one request, 502 in the envelope',
    needs: ['openai', 'far side'],
    async run ({ ask, far }) {
      far.play({ pieces: [], then: 'reset' })
      expectEnvelope(await ask('chat'), 'openai', 502)
      expect(far.seen.length === 1, `${far.seen.length} requests`)
      return '502 after one request'
    },
  },
  {
    number: 104,
    title: 'no credential of the caller travels, wherever it stood',
    needs: ['openai', 'far side'],
    async run ({ ask, far, options }) {
      const headers = {
        'x-api-key': 'decoy-1',
        'x-goog-api-key': 'decoy-2',
        'api-key': 'decoy-3',
        cookie: 'k=decoy-4',
        'proxy-authorization': 'Basic decoy-5',
      }
      const replies = [
        await ask('chat', { headers }), await ask('chat', { headers: { connection: 'authorization', 'x-api-key': 'decoy-6' } }),
      ]
      expect(
        far.seen.length === replies.length,
        `${far.seen.length} of ${replies.length} requests arrived (status ${replies.map(({ status }) => status).join(', ')}), which ` +
          'shows nothing'
      )
      const secrets = ['decoy-1', 'decoy-2', 'decoy-3', 'decoy-4', 'decoy-5', 'decoy-6', options.keys.openai]
      const carried = secrets.filter((secret) => far.seen.some(({ headerText }) => headerText.includes(secret)))
      expect(carried.length === 0, `the far side saw ${carried.length} of ${secrets.length}`)
      return 'nothing of it arrived'
    },
  },
  {
    number: 105,
    title: 'dot segments and encoded separators never reach the far side',
    needs: ['openai'],
    async run ({ ask, far }) {
      for (const path of [
        '/v1/../v1/chat/completions', '/v1/%2e%2e/v1/chat/completions', '/v1%2Fchat/completions', '/v1\\chat/completions',
        '/v1/chat/completions%00',
      ]) {
        const reply = await ask('chat', { path })
        expect(reply.status === 400 || reply.status === 404, `${path}: status ${reply.status}`)
        expect(reply.json !== null, `${path}: no envelope`)
      }
      expect(far.seen.length === 0, `the far side saw ${far.urls}`)
      return '400 or 404'
    },
  },
]
