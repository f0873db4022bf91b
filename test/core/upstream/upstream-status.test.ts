import t from 'tap'
import {
  mergedStatus, nothingKnown, stateText, type ModelOut, type UpstreamsStatus, type UpstreamStatus,
} from '../../../plugins/core/upstream/upstream-status.js'

const upstream = (name: string, more: Partial<UpstreamStatus> = {}): UpstreamStatus => ({
  name, address: 'https://h', account: name, state: 'up', reason: null, returnsInMs: 0, active: 1, models: [], workers: 1, ...more,
})
const limit = (model: string, returnsInMs: number): ModelOut => ({ model, reason: 'limit', returnsInMs })
const pool = (active: number) => ({
  name: 'p',
  members: [
    { upstream: 'a', tier: 1, weight: 1, concurrency: null, active }, { upstream: 'b', tier: 2, weight: 1, concurrency: 3, active: 0 },
  ],
})
const status = (upstreams: UpstreamStatus[], active: number): UpstreamsStatus => ({ upstreams, pools: [pool(active)], workers: 1 })

t.test('what several processes know of upstreams is one answer', async (t) => {
  const out = { state: 'out', reason: 'failures' } as const
  const all = mergedStatus([
    status([upstream('a', { models: [limit('m', 500), limit('n', 100)] }), upstream('b')], 2),
    status([upstream('a', { ...out, returnsInMs: 900 }), upstream('b', { active: 4 })], 3),
    status([upstream('a', { models: [limit('m', 700), limit('n', 50)], active: 5 }), upstream('b', { returnsInMs: 1 })], 4),
  ])
  t.strictSame(all, {
    upstreams: [
      upstream('a', { active: 6, workers: 2, models: [limit('m', 700), limit('n', 100)] }),
      upstream('a', { ...out, returnsInMs: 900 }),
      upstream('b', { active: 6, workers: 3, returnsInMs: 1 }),
    ],
    pools: [pool(9)],
    workers: 3,
  })
  t.strictSame(all.upstreams.map((each) => stateText(each, all.workers)), ['up (2 of 3 workers)', 'out: failures (1 of 3 workers)', 'up'])
  t.strictSame(mergedStatus([nothingKnown]), nothingKnown)
  t.strictSame(mergedStatus([]), { upstreams: [], pools: [], workers: 0 })
})
