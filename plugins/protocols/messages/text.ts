import { plainText, type TextRules } from '../text-rules.js'

export const messagesText: TextRules = {
  ...plainText,
  input: ['messages'],
  output: [
    { path: ['content', '*', 'text'], type: 'message' },
    { path: ['delta', 'text'], type: 'content_block_delta' },
  ],
}
