import { openaiReply } from '../openai-rules.js'
import type { UsageRules } from '../usage-rules.js'

export const embeddingsUsage: UsageRules = { ...openaiReply, usage: ['usage'], ending: null }
