import { plainSettings, type TextRules } from '../text-rules.js'

export const embeddingsText: TextRules = { input: ['input'], parts: 'content', output: [], settings: plainSettings }
