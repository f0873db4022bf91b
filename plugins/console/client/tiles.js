/* global document */
/** The current numbers. */
import { failures, inputTypes, outputTypes, percent, picked, quantileAt, rateAt, seconds, short, state, sum } from './numbers.js'

export const byId = (id) => document.getElementById(id)

function tile (id, text, unit = '', bad = false) {
  const place = byId(id).querySelector('b')
  place.textContent = text
  if (unit !== '') {
    const small = document.createElement('small')
    small.textContent = unit
    place.append(small)
  }
  byId(id).classList.toggle('bad', bad)
}

export function showTiles () {
  const last = state.points.length - 1
  const requests = rateAt(last, (point) => sum(Object.values(point.outcomes)))
  const failed = rateAt(last, (point) => picked(point.outcomes, failures))
  const lookups = rateAt(last, (point) => sum(Object.values(point.lookups)))
  const hits = rateAt(last, (point) => picked(point.lookups, ['hit', 'negative_hit']))
  const failedShare = requests > 0 ? failed / requests : null
  tile('rate', short(requests), '/s')
  tile('failed', percent(failedShare), '', failedShare > 0.01)
  tile('input', short(rateAt(last, (point) => picked(point.tokens, inputTypes))), '/s')
  tile('output', short(rateAt(last, (point) => picked(point.tokens, outputTypes))), '/s')
  tile('active', short(state.points[last].active))
  tile('first-chunk', seconds(quantileAt(last, 'firstChunk', 0.95)))
  tile('overhead', seconds(quantileAt(last, 'overhead', 0.95)))
  tile('cache', percent(lookups > 0 ? hits / lookups : null))
}
