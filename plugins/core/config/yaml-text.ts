/**
 * The value of a YAML text, what is wrong with it, and on which lines its parts are. `yaml` is the parser: 70 files, which an app without
 * such texts does not need.
 */
import type * as Yaml from 'yaml'
import type { Document, ErrorCode, LineCounter, ToJSOptions } from 'yaml'
import { joinPath } from './join-path.js'

type Parser = typeof Yaml

/**
 * For an operator's own file, in which a thousand groups may share one anchor: the parser takes its hundredth alias for an attack. A text
 * that grows with each alias of aliases is still refused.
 */
const plainValues: ToJSOptions = { maxAliasCount: 100_000 }

interface YamlMistake {
  /** Counted from 1. */
  readonly line: number
  readonly column: number
  readonly message: string
}

interface YamlText {
  readonly mistakes: readonly YamlMistake[]
  /** Throws if there are mistakes, or too many aliases. */
  readonly value: () => unknown
}

export function readYaml (yaml: Parser, text: string): YamlText {
  const { document, lines } = parse(yaml, text)
  const mistakes = mistakesOf(document, yaml).map(([code, at]): YamlMistake => {
    const { line, col: column } = lines.linePos(at)
    return { line, column, message: sentenceOf(code, text, at) }
  })
  return { mistakes, value: () => document.toJS(plainValues) }
}

function parse ({ LineCounter, parseDocument }: Parser, text: string): { document: Document.Parsed, lines: LineCounter } {
  const lines = new LineCounter()
  // Pretty errors quote the line, which may hold a secret; to find names that stand twice, the parser compares each with all before.
  return { document: parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false }), lines }
}

/** Mistakes that the parser found, names that stand twice in a map, and aliases without an anchor; each with its position. */
function mistakesOf (document: Document.Parsed, { isMap, isScalar, visit }: Parser): Array<[ErrorCode, number]> {
  const found = document.errors.map(({ code, pos }): [ErrorCode, number] => [code, pos[0]])
  // The parser reports an unknown alias only when its value is read, and then with its name: it may be a secret that begins with `*`.
  const anchors = new Set<string | undefined>()
  visit(document, {
    Value (_, node) {
      anchors.add(node.anchor)
      const names = new Set<unknown>()
      for (const { key } of isMap(node) ? node.items : []) {
        if (!isScalar(key)) continue
        if (names.has(key.value)) found.push(['DUPLICATE_KEY', Number(key.range?.[0])])
        names.add(key.value)
      }
    },
    Alias (_, { source: name, range }, around) {
      const isInItself = around.some((node) => Object(node).anchor === name)
      if (!anchors.has(name) || isInItself) found.push(['BAD_ALIAS', Number(range?.[0])])
    },
  })
  return found
}

/** Finds the line of a path, in the form of `joinPath`; if there is nothing, that of the nearest parent. Undefined for what has none. */
export function yamlLines (yaml: Parser, text: string): (path: string) => number | undefined {
  const { document, lines } = parse(yaml, text)
  const positions = new Map<string, number>()
  const walk = (node: unknown, path: string): void => {
    if (yaml.isMap<Ranged>(node)) for (const { key, value } of node.items) note(key, value, joinPath(path, String(key)))
    else if (yaml.isSeq<Ranged>(node)) node.items.forEach((item, index) => note(item, item, joinPath(path, index)))
  }
  const note = ({ range: [at] }: Ranged, value: unknown, path: string): void => {
    positions.set(path, Number(at))
    walk(value, path)
  }
  walk(document.contents, '')
  return (path) => {
    for (let near = path; near !== ''; near = near.replace(/(^|\.|\[)[^.[]*$/, '')) {
      const at = positions.get(near)
      if (at !== undefined) return lines.linePos(at).line
    }
    return undefined
  }
}

interface Ranged {
  readonly range: number[]
}

/** There may be as many such names as the text has room for: none is looked for in all of it. */
const longestName = 100

/** Messages for the parser's error codes. Its own messages may quote the text, which may hold a secret. */
const sentences: Readonly<Partial<Record<ErrorCode, string>>> = {
  BAD_ALIAS: 'an alias (* and a name) that names nothing: put a text that begins with * into quotes',
  BAD_DQ_ESCAPE: 'a text in double quotes has a backslash that begins no escape: double it, or use single quotes',
  BAD_INDENT: 'the indentation does not fit what stands around it, or a bracket is not closed',
  BAD_SCALAR_START: 'a text may not begin with this character: put it into quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a second colon in one line: put the text into quotes, or the inner name onto a line of its own',
  BLOCK_IN_FLOW: 'inside of braces or brackets a comma is missing before this, or a list or map stands in lines',
  DUPLICATE_KEY: 'the same name stands twice',
  MISSING_CHAR: 'something is missing here, such as a closing quote, brace or bracket, a comma, or a blank after a colon',
  MULTILINE_IMPLICIT_KEY: 'a name is not ended: a colon is missing, or a quote',
  MULTIPLE_DOCS: 'a second document begins (---), and there may be only one',
  TAB_AS_INDENT: 'a tab indents this line: use blanks',
  TAG_RESOLVE_FAILED: 'a tag (! and a name) that nobody knows',
  UNEXPECTED_TOKEN: 'this does not belong here',
}

/** A message for the operator; for a rare error only its code. */
function sentenceOf (code: ErrorCode, text: string, at: number): string {
  const sentence = sentences[code] ?? `the parser says ${code}`
  return code === 'DUPLICATE_KEY' ? sentence + text.slice(at, at + longestName).replace(/^["']?([\w./-]*).*$/s, ': $1') : sentence
}
