/** What the simulated upstream answers, by the id of the endpoint. */
import { protocols } from './list.js'
import { simulateModels } from './models/simulate.js'
import type { Simulation } from './simulate-text.js'

export type { Ask, SimulatedEvent, Simulation } from './simulate-text.js'

export const simulations: ReadonlyMap<string, Simulation> = new Map(
  [...protocols.map((protocol) => protocol.simulations), simulateModels].flatMap((each) => Object.entries(each)))
