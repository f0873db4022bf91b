import * as published from '@opentelemetry/semantic-conventions/incubating'
import t from 'tap'
import { attributes, metricNames, nextAttributes, nextEmbeddings, nextMetrics } from '../../plugins/core/telemetry/genai.js'
import { endpoints, families } from '../../plugins/protocols/index.js'

const constants = new Set<string>(Object.values(published).filter((value) => typeof value === 'string'))

t.test('attributes and metrics are those of the published conventions', async (t) => {
  for (const name of [...Object.values(attributes), ...Object.values(metricNames)]) t.ok(constants.has(name), name)
})

t.test('the next names are not published yet', async (t) => {
  // Once this fails: look up what they became, and move them to the others.
  const names = [nextAttributes, nextMetrics, nextEmbeddings].flatMap((named): string[] => Object.values(named))
  for (const name of names) t.notOk(constants.has(name), name)
})

t.test('providers are those of the published conventions', async (t) => {
  for (const { provider } of Object.values(families)) t.ok(constants.has(provider), provider)
})

t.test('operations are those of the published conventions, but for images, which have none', async (t) => {
  const operations = new Set(endpoints.filter(({ metered }) => metered !== 'no').map(({ operation }) => operation))
  for (const operation of operations) t.ok(constants.has(operation) || operation === 'image_generation', operation)
})
