import { choiceTexts } from '../openai-rules.js'
import { plainText, type TextRules } from '../text-rules.js'

export const responsesText: TextRules = {
  ...plainText,
  input: ['input'],
  output: [
    ...choiceTexts,
    { path: ['output', '*', 'content', '*', 'text'], type: null },
    { path: ['delta'], type: 'response.output_text.delta' },
  ],
}
