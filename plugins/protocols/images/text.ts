import { plainSettings, type TextRules } from '../text-rules.js'

export const imagesText: TextRules = { input: ['prompt'], parts: 'content', output: [], settings: plainSettings }
