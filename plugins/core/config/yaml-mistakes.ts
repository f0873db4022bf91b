import type { Document, ErrorCode, ToJSOptions, visit as Visit } from 'yaml'

/**
 * For an operator's own file, in which a thousand groups may share one anchor: the parser takes its hundredth alias for an attack. A text
 * that grows with each alias of aliases is still refused.
 */
export const plainValues: ToJSOptions = { maxAliasCount: 100_000 }

interface YamlMistake {
  readonly code: ErrorCode
  readonly at: number
}

/** Mistakes that the parser found, and aliases without an anchor. `visit`: the parser's own. */
export function yamlMistakes (document: Document.Parsed, visit: typeof Visit): YamlMistake[] {
  const found: YamlMistake[] = document.errors.map(({ code, pos }) => ({ code, at: pos[0] }))
  // The parser reports an unknown alias only when its value is read, and then with its name: it may be a secret that begins with `*`.
  const anchors = new Set<string | undefined>()
  visit(document, {
    Value (_, { anchor }) {
      anchors.add(anchor)
    },
    Alias (_, { source: name, range }, around) {
      const isInItself = around.some((node) => Reflect.get(Object(node), 'anchor') === name)
      if (!anchors.has(name) || isInItself) found.push({ code: 'BAD_ALIAS', at: Number(range?.[0]) })
    },
  })
  return found
}

/** Messages for the parser's error codes. Its own messages may quote the text, which may hold a secret. */
const sentences: Readonly<Partial<Record<ErrorCode, string>>> = {
  BAD_ALIAS: 'an alias (* and a name) that names nothing: put a text that begins with * into quotes',
  BAD_DQ_ESCAPE: 'a text in double quotes has a backslash that begins no escape: double it, or use single quotes',
  BAD_INDENT: 'the indentation does not fit what stands around it',
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

/** A message for the operator about a position in the text; for a rare error only its code. */
export function yamlSentence (code: ErrorCode, text: string, at: number): string {
  const sentence = sentences[code] ?? `the parser says ${code}`
  return code === 'DUPLICATE_KEY' ? sentence + text.slice(at).replace(/^["']?([\w./-]*).*$/s, ': $1') : sentence
}
