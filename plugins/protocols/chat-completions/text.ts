import { choiceTexts } from '../openai-rules.js'
import { plainSettings, type TextRules } from '../text-rules.js'

export const chatText: TextRules = { input: ['messages'], parts: 'content', output: choiceTexts, settings: plainSettings }
