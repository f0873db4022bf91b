import { existsSync, readFileSync } from 'node:fs'
import t from 'tap'
import { meterReply } from './meter-reply.js'

const corpus = new URL('../../../shared/corpus/', import.meta.url)
const isThere = existsSync(corpus)
const expected: Record<string, Record<string, number> | null> = isThere ? JSON.parse(readFileSync(new URL('expected.json', corpus), 'utf8')) : {}

for (const [file, leaves] of Object.entries(expected)) {
  const bytes = readFileSync(new URL(file, corpus))
  const protocol = String(file.split('/')[0])
  t.test(file, async (t) => {
    const whole = await meterReply(protocol, [bytes])
    t.strictSame(whole.llm.usage, leaves)
    t.equal(whole.llm.usageInconsistent, false)
    t.comment(whole.llm.responseModel, whole.llm.responseId, whole.llm.finishReason, whole.llm.modalities)
    for (const size of [1, 7, 100, 4096]) {
      const pieces = []
      for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size))
      const split = await meterReply(protocol, pieces)
      t.strictSame(split.llm.usage, leaves)
      t.strictSame([split.llm.responseModel, split.llm.responseId, split.llm.finishReason], [whole.llm.responseModel, whole.llm.responseId, whole.llm.finishReason])
    }
  })
}
