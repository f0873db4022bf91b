/** What a ledger record says of the cost, and all that it takes to work it out again with other prices. */
import type { Cost, Served } from '../core/cost.js'
import { labelsOf } from '../core/labels.js'
import type { ModelCall } from '../core/model-call.js'
import type { LedgerBill, LedgerCost } from '../core/ledger.js'

const maxNameLength = 128

/** Only what applies: most records are short. */
export function ledgerCost (llm: ModelCall): LedgerCost {
  const { cost, usage: { served } } = llm
  const labels = labelsOf(llm)
  return Object.assign(
    { bill: billOf(llm) },
    cost === null ? null : costFields(cost.told),
    served === null || served.tier === null ? null : { serviceTier: served.tier },
    labels === null ? null : { labels }
  )
}

function costFields ({ amount, currency, parts, price }: Cost): LedgerCost {
  const costParts: Record<string, string | null> = {}
  for (const part of parts) costParts[part.name] = part.amount
  return Object.assign({ cost: amount, currency, costParts }, price === null ? null : { price })
}

function billOf ({ startedAt, model, usage: { responseModel, served, modalities }, cost }: ModelCall): LedgerBill {
  return Object.assign(
    { startedAt: Math.round(performance.timeOrigin + startedAt) },
    responseModel === null || responseModel === model ? null : { model: responseModel.slice(0, maxNameLength) },
    cost === null || cost.told.factor === '1' ? null : { factor: cost.told.factor },
    modalities === null ? null : { modalities },
    served === null ? null : servedFields(served)
  )
}

function servedFields ({ speed, region, counts, tools, statedCost }: Served): Partial<LedgerBill> {
  return Object.assign(
    {},
    speed === null ? null : { speed },
    region === null ? null : { region },
    Object.keys(counts).length === 0 ? null : { counts },
    tools === null ? null : { tools },
    statedCost === null ? null : { statedCost }
  )
}
