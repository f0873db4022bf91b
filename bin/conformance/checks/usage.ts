/** Checks 40-54: every token is counted, once. They read the sums of the gateway's metrics, whatever their names. */
import { setTimeout as pause } from 'node:timers/promises'
import { arrivalOr, expect, expectStatus, fieldsOf, type Check, type Fields, type Kind, type Subject } from '../check.js'
import { grewBy, growth, scrape, type TokenSums } from '../metrics.js'
import { everyFamily } from '../needs.js'
import { chatChunk, sse } from '../replies.js'
import { familyOf } from '../subject.js'
import { metered, type Metered } from './usage-cases.js'

function shown (grown: TokenSums): string {
  return [...grown].map(([name, value]) => `${name} +${value}`).join(', ') || 'nothing'
}

/** Waits until the metrics have grown as expected: they may lag behind the reply. */
async function expectGrowth (subject: Subject, before: TokenSums, input: number, output: number): Promise<string> {
  const untilMs = performance.now() + subject.options.timeoutMs / 2
  let grown = growth(before, await sumsNow(subject))
  while (!grewBy(grown, input, output) && performance.now() < untilMs) {
    await pause(50)
    grown = growth(before, await sumsNow(subject))
  }
  expect(grewBy(grown, input, output), `instead of ${input} + ${output}: ${shown(grown)}`)
  return `${input} + ${output}`
}

async function sumsNow ({ options }: Subject): Promise<TokenSums> {
  return await scrape(options.metricsUrl, AbortSignal.timeout(options.timeoutMs))
}

function meter ({ number, title, kind, change, script, counts: [input, output], reply: look }: Metered): Check {
  const family = familyOf(kind)
  return {
    number,
    title,
    needs: [family, 'far side', 'metrics'],
    async run (subject) {
      const before = await sumsNow(subject)
      if (script !== undefined) subject.far.play(script)
      const reply = await subject.ask(kind, change?.(subject.options.models[family]))
      expectStatus(reply, 200)
      look?.(reply)
      return await expectGrowth(subject, before, input, output)
    },
  }
}

/** Where replies state their usage, as total input and total output. */
const told: ReadonlyArray<readonly [kind: Kind, field: string, input: readonly string[], output: readonly string[]]> = [
  ['chat', 'usage', ['prompt_tokens'], ['completion_tokens']],
  ['messages', 'usage', ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'], ['output_tokens']],
  ['gemini', 'usageMetadata', ['promptTokenCount', 'toolUsePromptTokenCount'], ['candidatesTokenCount', 'thoughtsTokenCount']],
]

function sum (usage: Fields, names: readonly string[]): number {
  return names.reduce((total, name) => total + Number(usage[name] ?? 0), 0)
}

export const usage: readonly Check[] = [
  ...metered.map(meter),
  {
    number: 106,
    title: 'what replies say is what the metrics count',
    needs: [...everyFamily, 'metrics'],
    async run (subject) {
      const seen: string[] = []
      for (const [kind, field, input, output] of told) {
        const before = await sumsNow(subject)
        const reply = await subject.ask(kind)
        expectStatus(reply, 200, kind)
        const usage = fieldsOf(fieldsOf(reply.json)[field])
        seen.push(`${kind} ${await expectGrowth(subject, before, sum(usage, input), sum(usage, output))}`)
      }
      return seen.join(', ')
    },
  },
  {
    number: 53,
    title: 'counting endpoints add nothing',
    needs: [...everyFamily, 'far side', 'metrics'],
    async run (subject) {
      const before = await sumsNow(subject)
      const { ask, options: { models } } = subject
      expectStatus(await ask('messages', { path: '/v1/messages/count_tokens' }), 200)
      expectStatus(await ask('gemini', { path: `/v1beta/models/${models.gemini}:countTokens` }), 200)
      expectStatus(await ask('responses', { path: '/v1/responses/input_tokens' }), 200)
      expectStatus(await ask('chat'), 200)
      return `${await expectGrowth(subject, before, 12, 5)}, of a chat alone`
    },
  },
  {
    number: 54,
    title: 'a caller that leaves mid-stream: the far side is cancelled, the gateway lives on',
    needs: ['openai', 'far side'],
    async run (subject) {
      const { ask, far } = subject
      far.play({ ...sse(chatChunk('Hi'), chatChunk('there')), before: (index) => index === 0 ? null : new Promise(() => {}) })
      const arrival = far.arrival()
      const left = ask('chat', { fields: { stream: true }, onBytes: () => true })
      await (await arrivalOr(arrival, left)).over
      await left
      far.reset()
      expectStatus(await ask('chat'), 200, 'the next request')
      return 'cancelled, the next request got 200'
    },
  },
]
