import { choiceTexts } from '../openai-rules.js'
import { plainSettings, type TextRules } from '../text-rules.js'

export const responsesText: TextRules = {
  input: ['input'],
  parts: 'content',
  output: [
    ...choiceTexts,
    { path: ['output', '*', 'content', '*', 'text'], type: null },
    { path: ['delta'], type: 'response.output_text.delta' },
  ],
  settings: plainSettings,
}
