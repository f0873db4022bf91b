/** Labels say whom a request is for, in the operator's own words: `team=search`. One value for each name. */
import { OptionError } from './options.js'
import type { ModelCall } from '../call/model-call.js'
import type { Labels } from '../types.js'

const name = /^[A-Za-z0-9_.-]{1,64}$/
/** No comma and no `=`, because several are written in one line. */
const value = /^[^\p{Cc},=]{1,128}$/u
export const maxLabels = 16

export function isLabel (label: string, text: unknown): text is string {
  return name.test(label) && typeof text === 'string' && value.test(text)
}

/** Throws `LLM_GATEWAY_OPTION` if they are not valid labels. */
export function checkLabels (option: string, labels: object): void {
  const entries = Object.entries(labels)
  if (entries.length > maxLabels) throw new OptionError(option, `must be at most ${maxLabels} labels`)
  for (const [label, text] of entries) {
    if (!isLabel(label, text)) {
      throw new OptionError(
        `${option}.${label}`,
        'must be a text of up to 128 characters without commas and =, named by up to 64 letters, digits, dots, dashes and underscores'
      )
    }
  }
}

/** Reads `a=1,b=2`; what is no label is left out, and so is everything after the sixteenth. */
export function readLabels (text: string): Labels {
  const pairs = text.split(',').slice(0, maxLabels).map((pair) => {
    const [label = '', ...rest] = pair.trim().split('=')
    return [label, rest.join('=')] as const
  })
  return Object.fromEntries(pairs.filter(([label, text]) => isLabel(label, text)))
}

/** All labels of a request, null for none. A caller's own never replace those of its key or group. */
export function labelsOf ({ callerLabels, auth: { group, key } }: ModelCall): Labels | null {
  if (callerLabels === null && key?.labels === undefined) return group?.labels ?? null
  return { ...callerLabels, ...group?.labels, ...key?.labels }
}
