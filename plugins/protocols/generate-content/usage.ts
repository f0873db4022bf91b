import { nowhere, plainCount, vertexTier, type ServedRules } from '../served-rules.js'
import { noCounts, plainReply, type UsageRules } from '../usage-rules.js'

/** A request that is answered from Google Maps is charged once for that (https://ai.google.dev/gemini-api/docs/maps-grounding). */
const places = 'candidates.*.groundingMetadata.groundingChunks.*.maps.uri[]'

/**
 * https://ai.google.dev/gemini-api/docs/priority-inference: the tier that served a request is in a header; on Vertex AI in `trafficType`.
 * Searches with grounding, of images too, are charged by query: each distinct one that is not empty
 * (https://ai.google.dev/gemini-api/docs/google-search).
 */
const served: ServedRules = {
  tier: {
    reply: [],
    usage: [['serviceTier'], ['trafficType']],
    header: 'x-gemini-service-tier',
    asked: ['serviceTier', 'service_tier'],
    askedBy: vertexTier,
  },
  speed: nowhere,
  region: nowhere,
  words: new Map([
    ['on_demand', 'standard'],
    ['unspecified', 'standard'],
    ['traffic_type_unspecified', 'standard'],
    ['on_demand_priority', 'priority'],
    ['on_demand_flex', 'flex'],
  ]),
  counts: [
    {
      ...plainCount,
      unit: 'search',
      reply: [
        'candidates.*.groundingMetadata.webSearchQueries.*[]', 'candidates.*.groundingMetadata.imageSearchQueries.*[]', places,
      ],
      once: [places],
    },
  ],
  cost: [],
}

export const generateContentUsage: UsageRules = {
  ...plainReply,
  usage: ['usageMetadata'],
  model: ['modelVersion'],
  id: ['responseId'],
  finish: ['candidates.*.finishReason'],
  failed: [],
  served,
  sign: 'kenCount"',
  // A blocked prompt has no candidate.
  ending: { types: [], reasons: ['candidates.*.finishReason', 'promptFeedback.blockReason'], arrays: true },
  head: { preamble: [], isEmpty: ({ candidates, promptFeedback }) => candidates === undefined && promptFeedback === undefined },
  counts: {
    ...noCounts,
    input: ['promptTokenCount'],
    cacheRead: ['cachedContentTokenCount'],
    toolInput: ['toolUsePromptTokenCount'],
    output: ['candidatesTokenCount'],
    reasoning: ['thoughtsTokenCount'],
    total: ['totalTokenCount'],
    inputHoldsCache: true,
    outputHoldsReasoning: false,
    // Embeddings have a spelling of their own.
    inputKinds: ['promptTokensDetails', 'promptTokenDetails'],
    cachedKinds: ['cacheTokensDetails'],
    outputKinds: ['candidatesTokensDetails'],
    // https://ai.google.dev/api/generate-content#Modality, for clients that ask for `enum-encoding=int`.
    numberedKinds: ['modality_unspecified', 'text', 'image', 'video', 'audio', 'document'],
  },
}
