/** Lines of values in a YAML text, for error messages. */
import { isMap, isSeq, LineCounter, parseDocument } from 'yaml'
import { ConfigError, joinPath } from './config-error.js'
import { hideVariables } from './config-yaml.js'

/** The same problems, each with the line of its path; if there is nothing, with that of the nearest parent. */
export function withLines ({ problems }: ConfigError, text: string): ConfigError {
  // For this the text is parsed once more.
  const lines = problems.length === 0 ? new Map<string, number>() : linesOf(text)
  return new ConfigError(problems.map((problem) => {
    const line = lineOf(problem.path, lines)
    return line === undefined ? problem : { ...problem, line }
  }))
}

function lineOf (path: string, lines: ReadonlyMap<string, number>): number | undefined {
  for (let at = path; at !== ''; at = at.replace(/(^|\.|\[)[^.[]*$/, '')) {
    const line = lines.get(at)
    if (line !== undefined) return line
  }
  return undefined
}

/** Maps paths, as in problems, to lines. */
function linesOf (text: string): Map<string, number> {
  const lineCounter = new LineCounter()
  const lines = new Map<string, number>()
  const walk = (node: unknown, path: string): void => {
    if (isMap<{ range: number[] }>(node)) {
      for (const { key, value } of node.items) note(key, value, joinPath(path, String(key)))
    } else if (isSeq<{ range: number[] }>(node)) {
      node.items.forEach((item, index) => note(item, item, joinPath(path, index)))
    }
  }
  const note = (place: { range: number[] }, value: unknown, path: string): void => {
    lines.set(path, lineCounter.linePos(Number(place.range[0])).line)
    walk(value, path)
  }
  walk(parseDocument(hideVariables(text), { lineCounter, prettyErrors: false }).contents, '')
  return lines
}
