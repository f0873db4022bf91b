import { randomBytes } from 'node:crypto'
import { PassThrough } from 'node:stream'
import * as zlib from 'node:zlib'
import t from 'tap'
import { codings, codingsOf } from '../../plugins/usage/content-codings.js'
import { SideDecoder } from '../../plugins/usage/decoder.js'
import { cutAt, meterCoded, requestFor, tapOn } from './meter-reply.js'
import { encodedByPiece, encoders } from './truth.js'

const reply = Buffer.from(JSON.stringify({
  id: 'x', model: 'm', choices: [], usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
}))
const mebi = 1024 * 1024

t.test('reads every coding that Node has, under any spelling', async (t) => {
  for (const [coding, encode] of Object.entries(encoders)) {
    for (const spelling of [coding, coding.toUpperCase(), ` ${coding}`]) {
      const { llm } = await meterCoded('chat_completions', [encode(reply)], spelling)
      t.equal(llm.usage.tokens?.output, 4, spelling)
    }
  }
  t.equal((await meterCoded('chat_completions', [zlib.gzipSync(reply)], 'x-gzip')).llm.usage.tokens?.output, 4)
  const unframed = await meterCoded('chat_completions', [zlib.deflateRawSync(reply)], 'deflate')
  t.equal(unframed.llm.usage.tokens?.output, 4, 'deflate without its frame')
  t.equal((await meterCoded('chat_completions', [zlib.gzipSync(reply), Buffer.from('trailing')], 'gzip')).llm.usage.tokens?.output, 4)
})

t.test('gzip: every member is read, and what follows them is not looked at, however it is cut', async (t) => {
  const { gzipSync } = zlib
  const packed = gzipSync(reply)
  const replies: Record<string, Buffer> = {
    'two members': Buffer.concat([gzipSync(reply.subarray(0, 30)), gzipSync(reply.subarray(30))]),
    'an empty member in front': Buffer.concat([gzipSync(''), packed]),
    'an empty member behind': Buffer.concat([packed, gzipSync('')]),
    padding: Buffer.concat([packed, Buffer.alloc(60)]),
    'padding and junk': Buffer.concat([packed, Buffer.alloc(6), Buffer.from('junk')]),
    junk: Buffer.concat([packed, Buffer.from('junk, and more of it')]),
    'junk that begins as a member': Buffer.concat([packed, Buffer.from([0x1f, 0x8b, 9, 9, 9, 9, 9, 9, 9, 9, 9])]),
    'junk behind two members': Buffer.concat([gzipSync(reply.subarray(0, 30)), gzipSync(reply.subarray(30)), Buffer.from('junk')]),
  }
  for (const [name, bytes] of Object.entries(replies)) {
    const cuts = Array.from(bytes, (_, cut) => cutAt(bytes, [cut]).filter(({ length }) => length > 0))
    for (const [cut, pieces] of [...cuts, Array.from(bytes, (byte) => Buffer.of(byte))].entries()) {
      const { llm, out } = await meterCoded('chat_completions', pieces, 'gzip')
      const { tokens, missing } = llm.usage
      if (tokens?.output !== 4 || missing !== null || !out.equals(bytes)) t.fail(`${name}, cut at ${cut}: ${missing}`)
    }
    t.pass(name)
  }
})

t.test('gzip: more junk behind a reply than is kept of it costs no usage', async (t) => {
  const small = zlib.gzipSync(reply)
  const padded = zlib.gzipSync(Buffer.concat([Buffer.from(`{"x":"${randomBytes(40_000).toString('hex')}",`), reply.subarray(1)]))
  const nearTheEnd = zlib.gzipSync(Buffer.concat([Buffer.from(`{"x":"${randomBytes(60_000).toString('hex')}",`), reply.subarray(1)]))
  t.ok(nearTheEnd.length > 64_600 && nearTheEnd.length < 65_500, 'it ends in the last piece that is kept')
  for (const packed of [small, padded, nearTheEnd]) {
    for (const junkBytes of [60_000, 65_500, 70_000, mebi]) {
      const bytes = Buffer.concat([packed, Buffer.alloc(junkBytes, 'junk')])
      for (const pieces of [[bytes], cutAt(bytes, [packed.length]), cutAt(bytes, [packed.length - 3, packed.length + 5, 66_000])]) {
        const { llm, out } = await meterCoded('chat_completions', pieces, 'gzip')
        t.equal(llm.usage.tokens?.output, 4, `${packed.length} bytes and ${junkBytes}, in ${pieces.length} pieces`)
        t.ok(out.equals(bytes))
      }
    }
  }
})

t.test('what fails late is not kept to be read again', async (t) => {
  const long = zlib.gzipSync(Buffer.concat([reply.subarray(0, -1), Buffer.from(`,"x":"${randomBytes(80_000).toString('hex')}"}`)]))
  const { llm, out } = await meterCoded('chat_completions', [long, Buffer.from('junk')], 'gzip')
  t.equal(llm.usage.tokens?.output, 4)
  t.ok(out.equals(Buffer.concat([long, Buffer.from('junk')])))
})

t.test('zstd is read where the Node version has it', async (t) => {
  const opened = new PassThrough()
  t.equal(codingsOf({ createZstdDecompress: () => opened }).get('zstd')?.(0), opened)
  t.equal(codingsOf({}).has('zstd'), false)
  t.equal(codings.has('zstd'), 'createZstdDecompress' in zlib)
})

const zstdIsMissing = 'zstd' in encoders
  ? false
  : `Node ${process.version} has no zstd: whole, truncated and overlong replies in it were not read`

t.test('zstd: whole replies, replies that break off, and bombs', { skip: zstdIsMissing }, async (t) => {
  const encode = encoders['zstd'] ?? Buffer.from
  const coded = encode(reply)
  for (const pieces of [[coded], cutAt(coded, [1, 9]), [...coded].map((byte) => Buffer.of(byte))]) {
    const { llm, out } = await meterCoded('chat_completions', pieces, 'zstd')
    t.strictSame([llm.usage.tokens?.input, llm.usage.tokens?.output, llm.usage.missing], [3, 4, null])
    t.ok(out.equals(coded))
  }
  const { llm: cut } = await meterCoded('chat_completions', [coded.subarray(0, -9)], 'zstd')
  t.match(cut, { usage: { tokens: null, missing: /^(?:parse_error|no_usage)$/ } }, 'Node 24 tells that a frame did not end, Node 22 does not')
  const plain = await meterCoded('chat_completions', [Buffer.from('{"not":"zstd"}')], 'zstd')
  t.match(plain.llm, { usage: { tokens: null, missing: 'parse_error' } })
  const two = await meterCoded('chat_completions', [Buffer.concat([encode(reply.subarray(0, 30)), encode(reply.subarray(30))])], 'zstd')
  const { tokens, missing } = two.llm.usage
  t.ok(missing === 'parse_error' || tokens?.output === 4, 'Node before 26 reads the first of several frames only: told, not guessed')
})

t.test('a coding that nobody knows, or more than two, is no usage, told as such, and the bytes pass', async (t) => {
  for (const coding of ['gzip, rot13', 'gzip, gzip, gzip']) {
    const llm = requestFor('chat_completions')
    const { tap } = tapOn(llm, { 'content-encoding': coding })
    t.equal(tap.push(reply), reply)
    t.equal(tap.end(), null)
    t.strictSame([llm.usage.tokens, llm.usage.missing, llm.holds], [null, 'parse_error', 1])
  }
})

t.test('a reply in the coding identity is read as it is', async (t) => {
  const llm = requestFor('chat_completions')
  const { tap } = tapOn(llm, { 'content-encoding': 'identity' })
  tap.push(reply)
  tap.end()
  t.equal(llm.usage.tokens?.output, 4)
})

t.test('bytes that are not what they say', async (t) => {
  const broken = zlib.gzipSync(Buffer.concat([reply, Buffer.alloc(100_000, 'x')]))
  broken.fill(0xff, 60)
  for (const pieces of [[Buffer.from('{"not":"gzip"}')], [broken], cutAt(broken, [50, 70, 90])]) {
    const { llm, out } = await meterCoded('chat_completions', pieces, 'gzip')
    t.equal(llm.usage.missing, 'parse_error')
    t.ok(out.equals(Buffer.concat(pieces)))
  }
})

t.test('what broke off is read as far as it came', async (t) => {
  const event = (fields: object): string => `data: ${JSON.stringify(fields)}\n\n`
  const start = event({ type: 'message_start', message: { usage: { input_tokens: 9, output_tokens: 1 } } })
  const noise = event({ type: 'ping', noise: [...Array(3_000).keys()].join('.') })
  for (const coding of Object.keys(encoders)) {
    // A block of zstd cannot be read before its end.
    const coded = Buffer.concat(await encodedByPiece(coding, [Buffer.from(start), Buffer.from(noise)]))
    const llm = requestFor('messages')
    const { tap, released } = tapOn(llm, { 'content-encoding': coding })
    tap.push(coded.subarray(0, coded.length - 40))
    t.equal(llm.holds, 1)
    tap.abort('client')
    t.equal(llm.holds, 2, 'settlement waits for the decoder')
    await released
    t.strictSame([llm.holds, llm.usage.tokens?.input, llm.usage.missing], [1, 9, null], coding)
  }
})

t.test('a stream that ends well but for the last bytes of its coding told no usage: it is not taken for a broken one', async (t) => {
  for (const coding of ['gzip', 'deflate', 'br']) {
    const coded = await encodedByPiece(coding, [
      Buffer.from('data: {"choices":[{"finish_reason":"stop"}]}\n\n'), Buffer.from('data: {}\n\n'),
    ])
    const { llm } = await meterCoded('chat_completions', coded.slice(0, -1), coding)
    t.strictSame([llm.usage.tokens, llm.usage.missing], [null, 'no_usage'], coding)
  }
})

t.test('an empty reply', async (t) => {
  const { llm } = await meterCoded('chat_completions', [], 'gzip')
  t.equal(llm.usage.missing, 'no_usage')
})

t.test('the end of the decoder may come before the end of the reply', async (t) => {
  const stream = zlib.createGunzip()
  let told: unknown = 'nothing'
  const decoder = new SideDecoder(() => stream, { read: () => {}, over: (failure) => { told = failure } })
  decoder.push(Buffer.from('no gzip at all'))
  await new Promise((resolve) => stream.once('close', resolve))
  decoder.push(Buffer.from('and more of it'))
  t.equal(told, 'nothing', 'nobody is told before the reply ended')
  decoder.end()
  t.equal(told, 'parse_error')
})

t.test('a bomb is given up early, its bytes pass, and it is counted as too large', async (t) => {
  const bytes = Buffer.concat([Buffer.from('{"pad":"'), Buffer.alloc(96 * mebi, ' '), Buffer.from('","usage":{"prompt_tokens":1}}')])
  for (const coding of ['gzip', 'br', 'zstd']) {
    const open = codings.get(coding)
    const bomb = encoders[coding]?.(bytes)
    if (open === undefined || bomb === undefined) continue
    let decoded = 0
    const over = new Promise((resolve) => {
      const decoder = new SideDecoder(open, { read: (chunk) => { decoded += chunk.length }, over: resolve })
      for (const piece of cutAt(bomb, [...Array(Math.floor(bomb.length / 65_536)).keys()].map((index) => (index + 1) * 65_536))) {
        decoder.push(piece)
      }
      decoder.end()
    })
    t.equal(await over, 'too_large', coding)
    t.ok(decoded <= mebi, `${decoded} bytes were decoded`)
    const { llm, out } = await meterCoded('chat_completions', [bomb], coding)
    t.strictSame([llm.usage.tokens, llm.usage.missing], [null, 'too_large'])
    t.ok(out.equals(bomb))
  }
})

t.test('what was told before the rest was packed too tightly is a part, and the rest is missing', async (t) => {
  const delta = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: ' '.repeat(1_000) } }
  const events = [
    { type: 'message_start', message: { id: 'm', model: 'm', usage: { input_tokens: 25, output_tokens: 1 } } },
    ...Array.from({ length: 40_000 }, () => delta),
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 9_000 } },
  ]
  const stream = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
  const { llm } = await meterCoded('messages', [zlib.gzipSync(stream)], 'gzip')
  t.match(llm.usage, { tokens: { input: 25, output: 1 }, partial: true, missing: 'too_large' })
})

t.test('a large reply that is packed as replies are is no bomb', async (t) => {
  const words = [...Array(200_000).keys()].map(
    (index) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: `word ${index % 977} ` } }] })}\n\n`
  )
  const stream = Buffer.from(words.join('') + 'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}\n\n')
  const { llm } = await meterCoded('chat_completions', [zlib.gzipSync(stream)], 'gzip')
  t.equal(llm.usage.tokens?.output, 4)
})

t.test('more than may wait for the decoder is given up', async (t) => {
  const noise = Buffer.alloc(18 * mebi, Buffer.from([...Array(251).keys()]))
  const stored = zlib.deflateSync(noise, { level: 0 })
  const { llm } = await meterCoded('chat_completions', [stored], 'deflate')
  t.equal(llm.usage.missing, 'too_large')
})
