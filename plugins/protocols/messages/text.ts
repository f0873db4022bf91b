import { plainSettings, type TextRules } from '../text-rules.js'

export const messagesText: TextRules = {
  input: ['messages'],
  parts: 'content',
  output: [
    { path: ['content', '*', 'text'], type: 'message' },
    { path: ['delta', 'text'], type: 'content_block_delta' },
  ],
  settings: plainSettings,
}
