/** Checks 19-30: where clients put their key, and what they read if it is refused. */
import { expect, expectEnvelope, expectStatus, type Check } from '../check.js'
import { everyFamily } from '../needs.js'
import { familyOf, kindOfEach } from '../subject.js'
import { accept, type Accepted } from './accept.js'
import { nobody } from './headers.js'

const decoy = 'decoy-4711'

const accepted: readonly Accepted[] = [
  {
    number: 19,
    title: 'Bearer, its scheme in any case',
    kind: 'chat',
    changes: (key) => [{ headers: { authorization: `bearer ${key}` } }],
  },
  {
    number: 20,
    title: 'messages: Bearer with version 2026-10-21',
    kind: 'messages',
    changes: (key) => [{ headers: { ...nobody, authorization: `Bearer ${key}`, 'anthropic-version': '2026-10-21' } }],
  },
  { number: 21, title: 'messages: x-api-key with version 2023-06-01', kind: 'messages', changes: () => [{}] },
  { number: 23, title: 'x-goog-api-key', kind: 'gemini', changes: () => [{}] },
  {
    number: 25,
    title: 'x-goog-api-key and Bearer with the same key',
    kind: 'gemini',
    changes: (key) => [{ headers: { authorization: `Bearer ${key}` } }],
  },
]

const percent = (key: string): string => Buffer.from(key).toString('hex').replace(/../g, '%$&')

export const auth: readonly Check[] = [
  ...accepted.map(accept),
  {
    number: 22,
    title: 'x-api-key and another Bearer: always the same answer, the other one never travels',
    needs: ['anthropic'],
    async run ({ ask, far }) {
      const headers = { authorization: `Bearer ${decoy}` }
      const statuses = [(await ask('messages', { headers })).status, (await ask('messages', { headers })).status]
      expect(statuses[0] === statuses[1] && (statuses[0] === 200 || statuses[0] === 401), `statuses ${statuses.join(', ')}`)
      expect(!far.seen.some(({ headerText }) => headerText.includes(decoy)), 'the far side got the other credential')
      return `${statuses[0]} twice`
    },
  },
  {
    number: 24,
    title: '?key= percent-encoded, gone from what the far side sees',
    needs: ['gemini'],
    async run ({ ask, far, options }) {
      const key = options.keys.gemini
      const path = `/v1beta/models/${options.models.gemini}:generateContent?x=1&key=${percent(key)}`
      expectStatus(await ask('gemini', { path, headers: nobody }), 200)
      expect(!far.urls.includes('key='), `the far side saw ${far.urls}`)
      return '200'
    },
  },
  {
    number: 26,
    title: 'no key, and a wrong one: 401 in the envelope of the family',
    needs: [],
    async run ({ ask }) {
      for (const kind of kindOfEach) {
        expectEnvelope(await ask(kind, { headers: nobody }), familyOf(kind), 401, `${kind} without a key`)
        const wrong = { authorization: 'Bearer wrong-4711', 'x-api-key': 'wrong-4711', 'x-goog-api-key': 'wrong-4711' }
        expectEnvelope(await ask(kind, { headers: wrong }), familyOf(kind), 401, `${kind} with a wrong key`)
      }
      return '401 for chat, messages, generateContent'
    },
  },
  {
    number: 27,
    title: 'a key of another group: 403 with a message of its own',
    needs: [...everyFamily, 'several keys'],
    async run ({ ask, options: { keys } }) {
      expectEnvelope(await ask('chat', { headers: { authorization: `Bearer ${keys.gemini}` } }), 'openai', 403, 'chat')
      expectEnvelope(await ask('messages', { headers: { 'x-api-key': keys.openai } }), 'anthropic', 403, 'messages')
      const error = expectEnvelope(await ask('gemini', { headers: { 'x-goog-api-key': keys.anthropic } }), 'gemini', 403, 'generateContent')
      return String(error.message)
    },
  },
  {
    number: 28,
    title: 'refusals that cannot heal say x-should-retry: false',
    needs: ['openai'],
    async run ({ ask }) {
      const reply = await ask('chat', { headers: nobody })
      expect(reply.headers['x-should-retry'] === 'false', `x-should-retry: ${reply.headers['x-should-retry'] ?? 'missing'}`)
      return `${reply.status} with x-should-retry: false`
    },
  },
  {
    number: 29,
    title: 'messages without a version: 400',
    needs: ['anthropic'],
    async run ({ ask }) {
      const error = expectEnvelope(await ask('messages', { headers: { 'anthropic-version': undefined } }), 'anthropic', 400)
      return String(error.message)
    },
  },
  {
    number: 30,
    title: 'HEAD / without a key is answered',
    needs: [],
    async run ({ ask }) {
      const reply = await ask('chat', { method: 'HEAD', path: '/', headers: nobody })
      expect(reply.status < 500, `status ${reply.status}`)
      return String(reply.status)
    },
  },
]
