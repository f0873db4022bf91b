/** Checks 107-111: ways around a guard. A request without a key of the gateway must never reach the far side, whatever its address. */
import { expect, type Change, type Check, type Subject } from '../check.js'
import { nobody, upgrade } from './headers.js'

/** Expects that the gateway itself refuses: nothing arrives, and the status is no success. */
async function expectRefused ({ ask, far }: Subject, about: string, change: Change): Promise<void> {
  const { status } = await ask('chat', change)
  expect(far.seen.length === 0, `${about}: the far side saw ${far.seen.map(({ method, url }) => `${method} ${url}`).join(', ')}`)
  expect(status >= 400 && status < 500, `${about}: status ${status}`)
}

interface Way {
  readonly about: string
  readonly change: Change
}

interface Guarded {
  readonly number: number
  readonly title: string
  readonly ways: readonly Way[]
}

const wrong = { ...nobody, authorization: 'Bearer wrong-4711' }
const upgrades = ['/v1/responses', '/v1/realtime?model=model-1', '/v1/chat/completions'].flatMap((path) => [
  { about: `${path} without a key`, change: { method: 'GET', path, headers: { ...nobody, ...upgrade } } },
  { about: `${path} with a wrong key`, change: { method: 'GET', path, headers: { ...wrong, ...upgrade } } },
])

const spellings = [
  '/V1/chat/completions', '/v1/chat/completions/', '//v1/chat/completions', '/v1/chat%2Fcompletions', '/v1/./chat/completions',
  '/v1/chat/completions;x=1', '/v1/chat/completions#x',
]
const methods = ['GET', 'PUT', 'PATCH', 'DELETE', 'QUERY']

const guarded: readonly Guarded[] = [
  { number: 107, title: 'an upgrade without a key, or with a wrong one, goes no further', ways: upgrades },
  {
    number: 110,
    title: 'another method without a key goes no further',
    ways: methods.map((method) => ({ about: method, change: { method, headers: nobody } })),
  },
  {
    number: 111,
    title: 'another spelling of the path without a key goes no further',
    ways: spellings.map((path) => ({ about: path, change: { path, headers: nobody } })),
  },
]

function guard ({ number, title, ways }: Guarded): Check {
  return {
    number,
    title,
    needs: ['openai', 'far side'],
    async run (subject) {
      for (const { about, change } of ways) await expectRefused(subject, about, change)
      return `${ways.length} refused`
    },
  }
}

export const guards: readonly Check[] = [
  ...guarded.map(guard),
  {
    number: 108,
    title: 'a preflight is answered here, whatever key it brings',
    needs: ['openai', 'far side'],
    async run ({ ask, far, options }) {
      const asking = {
        'content-type': undefined,
        origin: 'https://page.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,content-type',
      }
      const statuses: number[] = []
      for (const key of [undefined, `Bearer ${options.keys.openai}`]) {
        const reply = await ask('chat', { method: 'OPTIONS', headers: { ...nobody, ...asking, authorization: key } })
        statuses.push(reply.status)
      }
      expect(far.seen.length === 0, `the far side saw ${far.seen.length} of them`)
      return statuses.join(', ')
    },
  },
  {
    number: 109,
    title: 'a key in the query of an endpoint that has none there: not looked at or refused, and it never travels',
    needs: ['openai', 'far side'],
    async run (subject) {
      const { ask, far, options } = subject
      const path = `/v1/chat/completions?key=${encodeURIComponent(options.keys.openai)}`
      await expectRefused(subject, 'a key in the query alone', { path, headers: nobody })
      const { status } = await ask('chat', { path: '/v1/chat/completions?key=decoy-4711' })
      expect(!far.urls.includes('decoy-4711'), `the far side saw ${far.urls}`)
      expect(status === 200 || (status >= 400 && status < 500), `status ${status}`)
      return `refused alone, ${status} beside a header`
    },
  },
]
