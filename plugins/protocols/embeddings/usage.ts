import { openaiReply } from '../openai-rules.js'
import type { UsageRules } from '../usage-rules.js'

/** Some servers report only the total, which is the input: there is no output. */
const counts = { ...openaiReply.counts, input: [...openaiReply.counts.input, 'total_tokens'] }

export const embeddingsUsage: UsageRules = { ...openaiReply, usage: ['usage'], ending: null, counts }
