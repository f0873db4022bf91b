/**
 * The long runs of `test/usage/fixtures.test.ts` and `corpus.test.ts`: every reply whose tokens are known (the fixtures, and the
 * recordings where they are there) in every framing, plain and in every content coding that this Node has.
 *
 * `cuts`: through a tap, cut in two at every offset, or at 2,000 random ones where it has more than 4 KiB; compressed too.
 * `sockets`: through a gateway on real sockets, on every kind of mount, with bytes compared by hash. Fails at the first difference:
 *
 *     node --import=tsx test/scripts/usage-truth.ts [cuts | sockets, default both]
 */
import { isDeepStrictEqual } from 'node:util'
import { argv, stdout } from 'node:process'
import type { ModelCall } from '../../plugins/core/call/model-call.js'
import { call, listen, read, secret } from '../helpers/gateway.js'
import { sha256, startUpstream, type Signal, type Script } from '../helpers/upstream.js'
import { hosts } from '../usage/hosts.js'
import { encodedByPiece, encoders, firstWrongCoding, firstWrongSplit, repliesIn, type Reply } from '../usage/truth.js'
import { bytesOf, eventsOf } from '../usage/meter-reply.js'

const replies = [...repliesIn('fixtures'), ...repliesIn('corpus')]
/** Larger replies are not sent one byte per write here; `cuts` reads them so. */
const maxSingleBytes = 8 * 1024

const chat = '"model":"m","messages":[{"role":"user","content":"hi"}]'
const requests: Record<string, [url: string, body: string]> = {
  chat_completions: ['/v1/chat/completions', `{"stream":true,"stream_options":{"include_usage":true},${chat}}`],
  responses: ['/v1/responses', '{"model":"m","input":"hi","stream":true}'],
  images: ['/v1/images/generations', '{"model":"m","prompt":"hi"}'],
  embeddings: ['/v1/embeddings', '{"model":"m","input":"hi"}'],
  messages: ['/v1/messages', `{"max_tokens":9,"stream":true,${chat}}`],
  generate_content: ['/v1beta/models/m:streamGenerateContent', '{"contents":[{"parts":[{"text":"hi"}]}]}'],
}
const headers = {
  'x-api-key': secret, 'anthropic-version': '2023-06-01', 'x-goog-api-key': secret, 'accept-encoding': Object.keys(encoders).join(', '),
}

async function cutAll (): Promise<void> {
  for (const { file, protocol, bytes, truth } of replies) {
    const wrong = firstWrongSplit(protocol, bytes, truth, true) ?? await firstWrongCoding(protocol, bytes, truth, true)
    if (wrong !== null) throw new Error(`${file}: ${JSON.stringify(wrong)}`)
  }
  stdout.write(`${replies.length} replies: plain, ${Object.keys(encoders).join(', ')}; cut everywhere\n`)
}

/** One write, one event per write, one byte per write. */
async function framingsOf (bytes: Buffer, coding: string): Promise<Buffer[][]> {
  const encode = encoders[coding]
  const whole = encode === undefined ? bytes : encode(bytes)
  const events = encode === undefined ? eventsOf(bytes) : await encodedByPiece(coding, eventsOf(bytes))
  return [[whole], events, ...(whole.length <= maxSingleBytes ? [bytesOf(whole)] : [])]
}

function scriptOf ({ file }: Reply, pieces: readonly Buffer[], coding: string): Script {
  let at = 0
  return {
    body: Buffer.concat(pieces),
    split: pieces.slice(0, -1).map((piece) => (at += piece.length)),
    headers: {
      'content-type': file.endsWith('.sse') ? 'text/event-stream' : 'application/json',
      ...(coding !== 'identity' && { 'content-encoding': coding }),
    },
  }
}

async function sendAll (host: typeof hosts[0]): Promise<void> {
  const closing: (() => unknown)[] = []
  const scope = { teardown: (close: () => unknown) => closing.push(close) }
  const upstream = await startUpstream(scope)
  const { app, settled } = await host.start(scope, upstream.url)
  const base = await listen(app)
  let count = 0
  for (const reply of replies) {
    for (const coding of ['identity', ...Object.keys(encoders)]) {
      for (const pieces of await framingsOf(reply.bytes, coding)) {
        upstream.queue(scriptOf(reply, pieces, coding))
        await check(base, settled, reply, pieces, `${host.name}: ${reply.file}, ${coding}, ${pieces.length} pieces`)
        count += 1
      }
    }
  }
  for (const close of closing.reverse()) await close()
  stdout.write(`${host.name}: ${count} replies on sockets\n`)
}

async function check (
  base: string, settled: Signal<ModelCall>, { protocol, truth }: Reply, pieces: readonly Buffer[], name: string
): Promise<void> {
  const [url, body] = requests[protocol] ?? ['', '']
  const { bytes } = await read(await call(base + url, { headers, body }).reply)
  const { tokens: usage, missing: usageMissing } = (await settled.next()).usage
  const isRight = isDeepStrictEqual(usage, truth.leaves) && (truth.missing === undefined || usageMissing === truth.missing)
  if (!isRight || sha256(bytes) !== sha256(Buffer.concat(pieces))) {
    throw new Error(`${name}: ${JSON.stringify({ usage, usageMissing, truth, bytes: bytes.length })}`)
  }
}

const [, , what] = argv
if (what !== 'sockets') await cutAll()
if (what !== 'cuts') for (const host of hosts) await sendAll(host)
