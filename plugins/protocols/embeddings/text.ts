import { plainText, type TextRules } from '../text-rules.js'

export const embeddingsText: TextRules = { ...plainText, input: ['input'] }
