import { stateText, type UpstreamsStatus } from '../core/upstream/upstream-status.js'
import type { Row } from './readings.js'

/** Callers choose the models, so a page shows no more of them. */
const maxModels = 100

/**
 * Current state of upstreams: name, state, running requests, seconds until it may be asked; below each one the models for which it gets no
 * requests.
 */
export function memberRows ({ upstreams, workers }: UpstreamsStatus): Row[] {
  return upstreams.flatMap(({ models, ...upstream }) => [
    [upstream.name, stateText(upstream, workers), upstream.active, seconds(upstream.returnsInMs)],
    ...models.slice(0, maxModels).map(({ model, reason, returnsInMs }) => [upstream.name, `${model}: ${reason}`, 0, seconds(returnsInMs)]),
  ])
}

function seconds (ms: number): number {
  return Math.ceil(ms / 1_000)
}
