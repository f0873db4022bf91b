/**
 * Returns the code without what only its authors need: comments, blank lines, indentation, blanks around most signs, semicolons before a
 * brace or the end of a line, trailing commas, parentheses around the only parameter of an arrow; `undefined` in its shorter form. Lists
 * take one line, a closing brace stands behind what it closes, and the first statement of a block or branch behind what opens it. Names
 * stay and all other statements keep lines of their own, so that stack traces can be read.
 */
import ts from 'typescript'

const settings = { languageVersion: ts.ScriptTarget.ES2023, jsDocParsingMode: ts.JSDocParsingMode.ParseNone }

const comments = /\/\*[^]*?\*\/|\/\/[^\n]*/g

/** Two words, a number and a point, or signs that may form a third one: + and ++, a division and a regular expression. */
const needsBlank = /^(?:[\w$#\x80-\uffff][\w$#\\\x80-\uffff]|\d\.|\+\+|--|<!|\/.|.\/)$/

/** Tokens that cannot continue the statement before. */
const beginsStatement = /^(?!in\b|instanceof\b)[\w$#\x80-\uffff]/

/** As names of fields, they would be taken for modifiers of the next one. */
const saidOfNext = /^(?:accessor|async|get|set|static)$/

/** A semicolon that a brace or the end of a line replaces: not in the head of a loop, nor as the whole body of a loop or a condition. */
function isSpareSemicolon ({ kind }, of) {
  if (kind !== ts.SyntaxKind.SemicolonToken || ts.isEmptyStatement(of) || ts.isForStatement(of)) return false
  return !ts.isPropertyDeclaration(of) || of.initializer !== undefined || !saidOfNext.test(of.name.text)
}

/** The text between two tokens. */
function shorten (text) {
  if (text === '' || text === ' ') return text
  const bare = text.replace(comments, ' ')
  return bare.includes('\n') ? '\n' : ' '
}

/** Around the only parameter of an arrow, if it is a plain name. */
function isSpareParenthesis ({ kind }, of) {
  if (kind !== ts.SyntaxKind.OpenParenToken && kind !== ts.SyntaxKind.CloseParenToken) return false
  const [only, ...others] = ts.isArrowFunction(of) ? of.parameters : []
  if (only === undefined || others.length > 0 || of.parameters.hasTrailingComma) return false
  return ts.isIdentifier(only.name) && !only.dotDotDotToken && !only.initializer
}

/** The value, and not a member of that name. */
function isUndefined (node, of) {
  return ts.isIdentifier(node) && node.text === 'undefined' && of.name !== node && of.propertyName !== node
}

export function withoutComments (text) {
  const [shebang = ''] = /^#!.*\n/.exec(text) ?? []
  const file = ts.createSourceFile('file.js', text, settings)
  const parts = []
  let last = ''
  /** The last token opens a list, a block or a branch, or goes on with a list: the next one, if any, stays in its line. */
  let opensLine = false
  let isSpare = false
  let skipped = ''
  /** The last token is unnecessary before this one. */
  function isSpareBefore (token, gap) {
    if (!isSpare || token === '}') return isSpare
    return last === ',' ? token === ']' : gap === '\n' && beginsStatement.test(token)
  }
  function add (node, of) {
    const children = node.getChildren(file)
    if (children.length > 0) return children.forEach((child) => add(child, node))
    const start = node.getStart(file)
    if (isSpareParenthesis(node, of)) {
      skipped += text.slice(node.pos, start)
      return
    }
    const token = isUndefined(node, of) ? 'void 0' : text.slice(start, node.end)
    // A list without elements, or an empty element.
    if (token === '') return
    const shortened = shorten(skipped + text.slice(node.pos, start))
    skipped = ''
    const gap = opensLine || token === '}' || token === '=>' ? shortened.trim() : shortened
    if (isSpareBefore(token, gap)) parts.pop()
    const needsNone = gap === ' ' && !needsBlank.test(last.slice(-1) + text[start])
    parts.push((needsNone ? '' : gap) + token)
    // A comma after an empty element counts.
    isSpare = token === ',' ? !opensLine : isSpareSemicolon(node, of)
    opensLine = /^[,([{]$/.test(token) || (token === ')' && ts.isIfStatement(of))
    last = token
  }
  add(file, file)
  return shebang + parts.join('').trim() + '\n'
}
