import type { TextRules } from '../text-rules.js'
import { settingAt } from './settings.js'

export const generateContentText: TextRules = {
  input: ['contents', 'content'],
  parts: 'parts',
  output: [{ path: ['candidates', '*', 'content', 'parts', '*', 'text'], type: null }],
  settings: {
    temperature: settingAt('temperature', 'temperature'),
    topP: settingAt('topP', 'top_p'),
    topK: settingAt('topK', 'top_k'),
    seed: settingAt('seed', 'seed'),
  },
}
