/** Checks 1-18: the addresses that real clients build from the base addresses that people paste. */
import { expect, expectEnvelope, expectFar, expectStatus, type Check, type Subject } from '../check.js'
import { everyFamily } from '../needs.js'
import { familyOf, kindOfEach } from '../subject.js'

/** How the path at the far side ends; `M` stands for the model. */
const ends = { chat: '/v1/chat/completions', messages: '/v1/messages', gemini: '/models/M:generateContent' }

/** Addresses of one endpoint: what follows the base address. */
const reaches: ReadonlyArray<readonly [number: number, title: string, kind: keyof typeof ends, path: string]> = [
  [1, 'chat with /v1', 'chat', '/v1/chat/completions'],
  [2, 'chat without a prefix', 'chat', '/chat/completions'],
  [3, 'chat with /v1/v1', 'chat', '/v1/v1/chat/completions'],
  [4, 'chat behind a double slash', 'chat', '//chat/completions'],
  [5, 'messages with /v1', 'messages', '/v1/messages'],
  [6, 'messages with /v1/v1', 'messages', '/v1/v1/messages'],
  [7, 'messages without a prefix', 'messages', '/messages'],
  [8, 'generateContent with /v1beta', 'gemini', '/v1beta/models/M:generateContent'],
  [9, 'generateContent with /v1beta/v1beta', 'gemini', '/v1beta/v1beta/models/M:generateContent'],
  [10, 'generateContent with /v1/v1beta', 'gemini', '/v1/v1beta/models/M:generateContent'],
  [11, 'generateContent with /v1', 'gemini', '/v1/models/M:generateContent'],
  [12, 'generateContent behind a double slash', 'gemini', '//v1beta/models/M:generateContent'],
]

function reach ([number, title, kind, path]: typeof reaches[number]): Check {
  const family = familyOf(kind)
  return {
    number,
    title,
    needs: [family],
    async run (subject) {
      const model = subject.options.models[family]
      expectStatus(await subject.ask(kind, { path: path.replace('M', model) }), 200)
      return `200${expectOnce(subject, ends[kind].replace('M', model))}`
    },
  }
}

/** Models in a path that arrive as they were sent. */
const models: ReadonlyArray<readonly [number: number, title: string, path: string]> = [
  [13, 'a model with / : and @ arrives unchanged', '/models/vendor/m:free@1:generateContent'],
  [14, 'tuned models', '/tunedModels/m-1:generateContent'],
]

function arrive ([number, title, path]: typeof models[number]): Check {
  return {
    number,
    title,
    needs: ['gemini', 'far side'],
    async run (subject) {
      expectStatus(await subject.ask('gemini', { path: `/v1beta${path}` }), 200)
      return `200${expectOnce(subject, path)}`
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
  ...models.map(arrive),
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
    needs: ['mount prefix', ...everyFamily],
    async run ({ ask }) {
      for (const kind of kindOfEach) expectStatus(await ask(kind), 200, kind)
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
    needs: everyFamily,
    async run ({ ask }) {
      for (const kind of kindOfEach) expectStatus(await ask(kind, { method: 'GET', path: '/v1/models' }), 200, kind)
      return '200 three times'
    },
  },
]
