/** Every client, at every form of the base address, in every situation. Writes what it found to `results.json`. */
import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import type { Client } from './client.js'
import { ai } from './clients/ai.js'
import { anthropic } from './clients/anthropic.js'
import { genai } from './clients/genai.js'
import { langchain } from './clients/langchain.js'
import { openai } from './clients/openai.js'
import { startGateway } from './gateway.js'
import { situations } from './situations.js'

const clients: readonly Client[] = [...openai, ...anthropic, ...genai, ...ai, ...langchain]
const bases = ['', '/', '//', '/v1', '/v1/', '/v1beta', '/v1/v1']

interface Package {
  version: string
  engines?: { node?: string }
}

function packageOf ({ folder }: Client): Package {
  return JSON.parse(readFileSync(new URL(`node_modules/${folder}/package.json`, import.meta.url), 'utf8'))
}

async function within (work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('not done within 15 s')), 15_000)
  })
  await Promise.race([work, late]).finally(() => clearTimeout(timer))
}

const only = process.env.SDK_SUITE_ONLY ?? ''
const results: object[] = []

for (const client of clients.filter(({ name }) => name.includes(only))) {
  const { version, engines } = packageOf(client)
  t.test(`${client.name} (${version}), ${client.protocol}`, async (t) => {
    const setup = await startGateway(t)
    const failed: string[] = []
    for (const base of bases) {
      for (const [name, play] of Object.entries(situations)) {
        const title = `base ${JSON.stringify(base)}: ${name}`
        const reason = client.deaf?.[name]
        if (reason !== undefined) {
          t.pass(title, { skip: reason })
          continue
        }
        try {
          await within(play({ ...setup, client, base }))
          t.pass(title)
        } catch (error) {
          t.fail(title, { error: String(error), cause: error instanceof Error ? error.stack : null })
          failed.push(title)
        }
        setup.upstream.clear()
      }
    }
    t.strictSame(failed, [], 'each base and situation')
    const { name, protocol, setting, documented, deaf = {} } = client
    results.push({ name, version, node: engines?.node ?? 'any', protocol, setting, documented, skipped: Object.keys(deaf), failed })
  })
}

t.teardown(() => {
  if (only !== '') return
  const found = { bases, situations: Object.keys(situations), clients: results }
  writeFileSync(new URL('results.json', import.meta.url), JSON.stringify(found, null, 2) + '\n')
})
