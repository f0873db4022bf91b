/**
 * The same code without its comments, blank lines and indentation, no blanks along most signs, lists in a line, closing braces behind what
 * they close, and without the semicolons that those make up for; `undefined` by its shorter name, and no parentheses around the only
 * parameter of an arrow. Names stay, and a statement keeps a line of its own: the trace of an error tells as much as before.
 */
import ts from 'typescript'

const settings = { languageVersion: ts.ScriptTarget.ES2023, jsDocParsingMode: ts.JSDocParsingMode.ParseNone }

const comments = /\/\*[^]*?\*\/|\/\/[^\n]*/g

/** Two words, a number and a point, or signs that may make a third: + and ++, a division and a pattern. */
const needsBlank = /^(?:[\w$#\x80-\uffff][\w$#\\\x80-\uffff]|\d\.|\+\+|--|<!|\/.|.\/)$/

/** What stands between two tokens. */
function shorten (text) {
  if (text === '' || text === ' ') return text
  const bare = text.replace(comments, ' ')
  return bare.includes('\n') ? '\n' : ' '
}

/** Around the only parameter of an arrow, which is a plain name. */
function isSpareParenthesis ({ kind }, of) {
  if (kind !== ts.SyntaxKind.OpenParenToken && kind !== ts.SyntaxKind.CloseParenToken) return false
  const [only, ...others] = ts.isArrowFunction(of) ? of.parameters : []
  if (only === undefined || others.length > 0 || of.parameters.hasTrailingComma) return false
  return ts.isIdentifier(only.name) && !only.dotDotDotToken && !only.initializer
}

/** The value, and no member of that name. */
function isUndefined (node, of) {
  return ts.isIdentifier(node) && node.text === 'undefined' && of.name !== node && of.propertyName !== node
}

export function withoutComments (text) {
  const [shebang = ''] = /^#!.*\n/.exec(text) ?? []
  const file = ts.createSourceFile('file.js', text, settings)
  let code = ''
  let isSpareEnd = false
  let skipped = ''
  function add (node, of) {
    const children = node.getChildren(file)
    if (children.length > 0) return children.forEach((child) => add(child, node))
    const start = node.getStart(file)
    const token = isUndefined(node, of) ? 'void 0' : text.slice(start, node.end)
    if (isSpareEnd && token === '}') code = code.slice(0, -1)
    if (isSpareParenthesis(node, of)) {
      skipped += text.slice(node.pos, start)
      return
    }
    const shortened = shorten(skipped + text.slice(node.pos, start))
    skipped = ''
    const gap = /[,([]$/.test(code) || token === '}' || token === '=>' ? shortened.trim() : shortened
    const isSpare = gap === ' ' && !needsBlank.test(code.slice(-1) + text[start])
    // What a loop or a condition does may be nothing, and that is written as a semicolon.
    isSpareEnd = node.kind === ts.SyntaxKind.SemicolonToken && of.kind !== ts.SyntaxKind.EmptyStatement
    code += (isSpare ? '' : gap) + token
  }
  add(file, file)
  return shebang + code.trim() + '\n'
}
