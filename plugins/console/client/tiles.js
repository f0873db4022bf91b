/* global document */
/** The current numbers. */
import { failures, inputTypes, outputTypes, percent, quantileOf, rateOf, seconds, short, state } from './numbers.js'

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
  const requests = rateOf('outcomes')(last)
  const failed = rateOf('outcomes', failures)(last)
  const lookups = rateOf('lookups')(last)
  const hits = rateOf('lookups', ['hit', 'negative_hit'])(last)
  const failedShare = requests > 0 ? failed / requests : null
  tile('rate', short(requests), '/s')
  tile('failed', percent(failedShare), '', failedShare > 0.01)
  tile('input', short(rateOf('tokens', inputTypes)(last)), '/s')
  tile('output', short(rateOf('tokens', outputTypes)(last)), '/s')
  tile('active', short(state.points[last].active))
  tile('first-chunk', seconds(quantileOf('firstChunk', 0.95)(last)))
  tile('overhead', seconds(quantileOf('overhead', 0.95)(last)))
  tile('cache', percent(lookups > 0 ? hits / lookups : null))
}
