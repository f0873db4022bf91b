/** What the simulated upstream answers, by the id of the endpoint. */
import { simulateChatCompletions } from './simulate-chat-completions.js'
import { simulateEmbeddings } from './simulate-embeddings.js'
import { simulateGenerateContent } from './simulate-generate-content.js'
import { simulateImages } from './simulate-images.js'
import { simulateMessages } from './simulate-messages.js'
import { simulateModels } from './simulate-models.js'
import { simulateResponses } from './simulate-responses.js'
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
