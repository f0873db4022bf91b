import { choiceTexts } from '../openai-rules.js'
import { plainText, type TextRules } from '../text-rules.js'

export const chatText: TextRules = { ...plainText, input: ['messages'], output: choiceTexts }
