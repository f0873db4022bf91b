import { plainText, type TextRules } from '../text-rules.js'

export const imagesText: TextRules = { ...plainText, input: ['prompt'] }
