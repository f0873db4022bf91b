/** Counters of upstreams and pools whose labels follow from the configuration. */
import type { Recorder } from '../core/recorder.js'
import { attemptResults } from './judgement.js'
import type { Pool } from './pool.js'

/** Starts these counters at 0. */
export function expectCounts (recorder: Recorder, upstreams: Iterable<string>, pools: Iterable<Pool>): void {
  recorder.expect('upstream_attempts_total', attempts(upstreams))
  recorder.expect('failovers_total', failovers(pools))
}

function * attempts (upstreams: Iterable<string>): Generator<readonly string[]> {
  for (const upstream of upstreams) for (const result of attemptResults) yield [upstream, result]
}

/** By the causes of each pool; a refused credential and an unknown id always lead to another member. */
function * failovers (pools: Iterable<Pool>): Generator<readonly string[]> {
  for (const { name, causes } of pools) for (const cause of [...causes, 'credential', 'unknown_id']) yield [name, cause]
}
