/** Checks 1-18: the addresses that real clients build from the base addresses that people paste. */
import { expect, expectEnvelope, expectFar, expectStatus, type Check, type Kind, type Subject } from '../check.js'
import { familyOf } from '../subject.js'

interface Reach {
  readonly number: number
  readonly title: string
  readonly kind: Kind
  /** What follows the base address; `M` stands for the model. */
  readonly path: string
  /** How the path at the far side ends. */
  readonly far: string
}

const reaches: readonly Reach[] = [
  { number: 1, title: 'chat with /v1', kind: 'chat', path: '/v1/chat/completions', far: '/v1/chat/completions' },
  { number: 2, title: 'chat without a prefix', kind: 'chat', path: '/chat/completions', far: '/v1/chat/completions' },
  { number: 3, title: 'chat with /v1/v1', kind: 'chat', path: '/v1/v1/chat/completions', far: '/v1/chat/completions' },
  { number: 4, title: 'chat behind a double slash', kind: 'chat', path: '//chat/completions', far: '/v1/chat/completions' },
  { number: 5, title: 'messages with /v1', kind: 'messages', path: '/v1/messages', far: '/v1/messages' },
  { number: 6, title: 'messages with /v1/v1', kind: 'messages', path: '/v1/v1/messages', far: '/v1/messages' },
  { number: 7, title: 'messages without a prefix', kind: 'messages', path: '/messages', far: '/v1/messages' },
  {
    number: 8,
    title: 'generateContent with /v1beta',
    kind: 'gemini',
    path: '/v1beta/models/M:generateContent',
    far: '/models/M:generateContent',
  },
  {
    number: 9,
    title: 'generateContent with /v1beta/v1beta',
    kind: 'gemini',
    path: '/v1beta/v1beta/models/M:generateContent',
    far: '/models/M:generateContent',
  },
  {
    number: 10,
    title: 'generateContent with /v1/v1beta',
    kind: 'gemini',
    path: '/v1/v1beta/models/M:generateContent',
    far: '/models/M:generateContent',
  },
  { number: 11, title: 'generateContent with /v1', kind: 'gemini', path: '/v1/models/M:generateContent', far: '/models/M:generateContent' },
  {
    number: 12,
    title: 'generateContent behind a double slash',
    kind: 'gemini',
    path: '//v1beta/models/M:generateContent',
    far: '/models/M:generateContent',
  },
]

function reach ({ number, title, kind, path, far }: Reach): Check {
  const family = familyOf(kind)
  return {
    number,
    title,
    needs: [family],
    async run (subject) {
      const model = subject.options.models[family]
      const reply = await subject.ask(kind, { path: path.replace('M', model) })
      expectStatus(reply, 200)
      return `200${expectOnce(subject, far.replace('M', model))}`
    },
  }
}

// The path in front may be the upstream's own, but must not contain a version or a slash twice.
function expectOnce (subject: Subject, end: string): string {
  return expectFar(subject, new RegExp(`^(?!.*(//|(/v1|/v1beta){2,}/)).*${escaped(end)}$`))
}

function escaped (text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}

export const paths: readonly Check[] = [
  ...reaches.map(reach),
  {
    number: 13,
    title: 'a model with / : and @ arrives unchanged',
    needs: ['gemini', 'far side'],
    async run (subject) {
      expectStatus(await subject.ask('gemini', { path: '/v1beta/models/vendor/m:free@1:generateContent' }), 200)
      return `200${expectOnce(subject, '/models/vendor/m:free@1:generateContent')}`
    },
  },
  {
    number: 14,
    title: 'tuned models',
    needs: ['gemini', 'far side'],
    async run (subject) {
      expectStatus(await subject.ask('gemini', { path: '/v1beta/tunedModels/m-1:generateContent' }), 200)
      return `200${expectOnce(subject, '/tunedModels/m-1:generateContent')}`
    },
  },
  {
    number: 15,
    title: 'the endpoint twice: 404 with a hint',
    needs: ['openai'],
    async run ({ ask }) {
      const error = expectEnvelope(await ask('chat', { path: '/v1/chat/completions/chat/completions' }), 'openai', 404)
      expect(/\/v1|base/i.test(String(error.message)), `no hint in: ${String(error.message)}`)
      return String(error.message)
    },
  },
  {
    number: 16,
    title: 'a mount prefix',
    needs: ['mount prefix', 'openai', 'anthropic', 'gemini'],
    async run ({ ask }) {
      for (const kind of ['chat', 'messages', 'gemini'] as const) expectStatus(await ask(kind), 200, kind)
      return '200 for chat, messages, generateContent'
    },
  },
  {
    number: 17,
    title: 'an encoded slash in a model name is kept',
    needs: ['openai', 'far side'],
    async run (subject) {
      expectStatus(await subject.ask('chat', { method: 'GET', path: '/v1/models/vendor%2Fm' }), 200)
      return `200${expectFar(subject, /\/v1\/models\/vendor(%2F|\/)m$/i)}`
    },
  },
  {
    number: 18,
    title: 'the model list of three families',
    needs: ['openai', 'anthropic', 'gemini'],
    async run ({ ask }) {
      for (const kind of ['chat', 'messages', 'gemini'] as const) {
        expectStatus(await ask(kind, { method: 'GET', path: '/v1/models' }), 200, kind)
      }
      return '200 three times'
    },
  },
]
