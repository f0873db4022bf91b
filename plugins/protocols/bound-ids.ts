/** What a provider keeps for the account that it was made with: its id means nothing to any other one. */
import type { ProtocolLabel } from './types.js'

interface BoundIds {
  /** The field of a request's body that names one. */
  readonly field: string
}

export const boundIds: Partial<Record<ProtocolLabel, BoundIds>> = {
  responses: { field: 'previous_response_id' },
}
