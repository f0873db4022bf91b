/** Checks 55-60: streams pass unchanged and without delay, and fail so that the caller notices. */
import { EventEmitter, once } from 'node:events'
import { expect, expectStatus, type Check, type Subject } from '../check.js'
import { everyFamily } from '../needs.js'
import { sse } from '../replies.js'
import { eventsOf } from '../wire.js'
import { upgrade } from './headers.js'
import { askStream, cutOff, playEach, streamKinds, whole, type StreamKind } from './stream-cases.js'

async function expectSameBytes (subject: Subject, kind: StreamKind, pieces: ReadonlyArray<string | Buffer>): Promise<void> {
  subject.far.play(sse(...pieces))
  const reply = await askStream(subject, kind)
  expectStatus(reply, 200, kind)
  const sent = Buffer.concat(pieces.map((piece) => Buffer.from(piece)))
  expect(reply.bytes.equals(sent), `${kind}: ${sent.length} bytes sent, other ${reply.bytes.length} arrived: ${reply.text.slice(-120)}`)
}

const failure = /"error"|response\.failed/

export const streams: readonly Check[] = [
  {
    number: 55,
    title: 'the first event arrives before the second one is sent',
    needs: ['openai', 'far side'],
    async run (subject) {
      const caller = new EventEmitter()
      const arrived = once(caller, 'bytes')
      subject.far.play({ ...sse(...whole.chat), before: (index) => index === 1 ? arrived : null })
      const reply = await askStream(subject, 'chat', { onBytes: () => { caller.emit('bytes') } })
      expectStatus(reply, 200)
      return `${reply.bytes.length} bytes, the first ones at once`
    },
  },
  {
    number: 56,
    title: 'an emoji split between two writes',
    needs: ['openai', 'far side'],
    async run (subject) {
      const bytes = Buffer.from(whole.chat.join('').replace('Hi', '👋'))
      const middle = bytes.indexOf(Buffer.from('👋')) + 2
      await expectSameBytes(subject, 'chat', [bytes.subarray(0, middle), bytes.subarray(middle)])
      return 'same bytes'
    },
  },
  {
    number: 57,
    title: 'the bytes of a stream: event lines, line ends, nothing added',
    needs: [...everyFamily, 'far side'],
    async run (subject) {
      for (const kind of streamKinds) await expectSameBytes(subject, kind, whole[kind])
      return 'same bytes for chat, responses, messages, generateContent'
    },
  },
  {
    number: 58,
    title: 'a comment between events changes no event',
    needs: ['anthropic', 'far side'],
    async run (subject) {
      subject.far.play(sse(...whole.messages.flatMap((piece) => [': keepalive\n\n', piece])))
      const reply = await askStream(subject, 'messages')
      const [got, sent] = [eventsOf(reply.text), eventsOf(whole.messages.join(''))]
      const wrong = sent.findIndex((event, i) => got[i] !== event)
      expect(
        wrong < 0,
        `status ${reply.status}, event ${wrong + 1} of ${sent.length} is ${String(got[wrong]).slice(0, 60)} instead of ` +
          `${String(sent[wrong]).slice(0, 60)}`
      )
      expect(got.length === sent.length, `${got.length} events instead of ${sent.length}`)
      return `${got.length} events`
    },
  },
  {
    number: 59,
    title: 'a far side that breaks off mid-stream never looks like success',
    needs: [...everyFamily, 'far side'],
    async run (subject) {
      return await playEach(subject, cutOff, (kind, reply) => {
        expect(subject.far.seen.length > 0, `${kind}: status ${reply.status}, and nothing was forwarded`)
        const told = failure.test(eventsOf(reply.text).slice(-1).join())
        expect(told || !reply.clean, `${kind}: a clean end after ${eventsOf(reply.text).length} event`)
        return `${kind}: ${told ? 'error event' : 'socket cut'}`
      })
    },
  },
  {
    number: 60,
    title: 'a WebSocket upgrade of /v1/responses: 426 at once',
    needs: ['openai'],
    async run ({ ask }) {
      expectStatus(await ask('responses', { method: 'GET', headers: upgrade }), 426)
      expectStatus(await ask('responses'), 200, 'the POST that follows')
      return '426, then 200 for POST'
    },
  },
]
