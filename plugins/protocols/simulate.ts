/** What the simulated upstream answers, by the id of the endpoint. */
import { simulateChatCompletions } from './chat-completions/simulate.js'
import { simulateEmbeddings } from './embeddings/simulate.js'
import { simulateGenerateContent } from './generate-content/simulate.js'
import { simulateImages } from './images/simulate.js'
import { simulateMessages } from './messages/simulate.js'
import { simulateModels } from './models/simulate.js'
import { simulateResponses } from './responses/simulate.js'
import type { Simulation } from './simulate-text.js'

export type { Ask, SimulatedEvent, Simulation } from './simulate-text.js'

export const simulations: ReadonlyMap<string, Simulation> = new Map(Object.entries({
  ...simulateChatCompletions,
  ...simulateResponses,
  ...simulateImages,
  ...simulateEmbeddings,
  ...simulateMessages,
  ...simulateGenerateContent,
  ...simulateModels,
}))
