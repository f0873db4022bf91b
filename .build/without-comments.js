/**
 * The same code without its comments, blank lines and indentation, no blanks along most signs, lists in a line, closing braces behind what
 * they close, and without the semicolons that those or the end of a line make up for; `undefined` by its shorter name, no comma behind the
 * last of a list, and no parentheses around the only parameter of an arrow. Names stay, and a statement keeps a line of its own: the trace
 * of an error tells as much as before.
 */
import ts from 'typescript'

const settings = { languageVersion: ts.ScriptTarget.ES2023, jsDocParsingMode: ts.JSDocParsingMode.ParseNone }

const comments = /\/\*[^]*?\*\/|\/\/[^\n]*/g

/** Two words, a number and a point, or signs that may make a third: + and ++, a division and a pattern. */
const needsBlank = /^(?:[\w$#\x80-\uffff][\w$#\\\x80-\uffff]|\d\.|\+\+|--|<!|\/.|.\/)$/

/** What no statement before it could take in. */
const beginsStatement = /^(?!in\b|instanceof\b)[\w$#\x80-\uffff]/

/** As names of fields they would be taken for what is said of the next one. */
const saidOfNext = /^(?:accessor|async|get|set|static)$/

/** Made up for by a brace or the end of a line: not in the head of a loop, nor where it is all that a loop or a condition does. */
function isSpareSemicolon ({ kind }, of) {
  if (kind !== ts.SyntaxKind.SemicolonToken || ts.isEmptyStatement(of) || ts.isForStatement(of)) return false
  return !ts.isPropertyDeclaration(of) || of.initializer !== undefined || !saidOfNext.test(of.name.text)
}

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
  const parts = []
  let last = ''
  /** An element of a list comes next, or none. */
  let isInList = false
  let isSpare = false
  let skipped = ''
  /** The last token goes without saying before this one. */
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
    // A list without elements, or an element that is none.
    if (token === '') return
    const shortened = shorten(skipped + text.slice(node.pos, start))
    skipped = ''
    const gap = isInList || token === '}' || token === '=>' ? shortened.trim() : shortened
    if (isSpareBefore(token, gap)) parts.pop()
    const needsNone = gap === ' ' && !needsBlank.test(last.slice(-1) + text[start])
    parts.push((needsNone ? '' : gap) + token)
    // A comma where no element is stands for one.
    isSpare = token === ',' ? !isInList : isSpareSemicolon(node, of)
    isInList = /^[,([]$/.test(token) || (token === '{' && ts.isObjectLiteralExpression(of))
    last = token
  }
  add(file, file)
  return shebang + parts.join('').trim() + '\n'
}
