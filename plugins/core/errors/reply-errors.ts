import createError from '@fastify/error'

/** An upstream ended its stream cleanly, and without the last event that its protocol promises: what was passed on is not all. */
export const StreamCutError = createError<[]>('LLM_GATEWAY_STREAM_CUT', 'the upstream ended its stream without the last event', 502)

/** An upstream packs its reply by a transfer coding that nobody offered to unpack. */
export const ReplyCodedError = createError<[]>('LLM_GATEWAY_REPLY_CODED', 'the upstream sent its reply under a transfer coding', 502)
