import createError from '@fastify/error'

/** An upstream ended its stream cleanly, but without the last event of its protocol: what was passed on is incomplete. */
export const StreamCutError = createError<[]>('LLM_GATEWAY_STREAM_CUT', 'the upstream ended its stream without the last event', 502)

/** An upstream used a transfer coding that nobody offered to decode. */
export const ReplyCodedError = createError<[]>('LLM_GATEWAY_REPLY_CODED', 'the upstream sent its reply under a transfer coding', 502)
