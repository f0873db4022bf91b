/** The numbers that hold for options that are left out: code, schema of the file, docstrings and pages say the same. */
import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import ts from 'typescript'

const root = new URL('../../', import.meta.url).pathname
const files = readdirSync(`${root}plugins`, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts')).map((name) => {
  return ts.createSourceFile(name, readFileSync(`${root}plugins/${name}`, 'utf8'), ts.ScriptTarget.Latest, true)
})

/** A number, or a product of numbers; NaN for anything else. */
function numberOf (node: ts.Expression): number {
  if (ts.isNumericLiteral(node)) return Number(node.text.replaceAll('_', ''))
  return ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.AsteriskToken
    ? numberOf(node.left) * numberOf(node.right)
    : NaN
}

class Numbers {
  readonly #byName = new Map<string, number[]>()
  put (name: string, ...numbers: readonly number[]): void {
    this.#byName.set(name, [...this.of(name), ...numbers])
  }

  of (name: string): readonly number[] {
    return this.#byName.get(name) ?? []
  }
}

const [code, docstrings] = [new Numbers(), new Numbers()]

/** As people write them: `1,024`, `4 MiB`. The first one of a text. */
function written (text: string): number[] {
  const [, digits, unit] = /(\d[\d,]*)( MiB)?/.exec(text) ?? []
  return digits === undefined ? [] : [Number(digits.replaceAll(',', '')) * (unit === undefined ? 1 : 1024 * 1024)]
}

/** What stands for a name where it is left out: `{ name = 1 }`, `options.name ?? 1`, or `name: 1` in an object of defaults. */
function readDefault (node: ts.Node, number: (node: ts.Expression) => number): void {
  if (ts.isBindingElement(node) && node.initializer !== undefined) code.put(node.name.getText(), number(node.initializer))
  else if (ts.isPropertyAssignment(node)) code.put(node.name.getText(), number(node.initializer))
  else if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.QuestionQuestionToken) {
    code.put(/\w*$/.exec(node.left.getText())?.[0] ?? '', number(node.right))
  }
}

for (const file of files) {
  const constants = new Map(file.statements.filter(ts.isVariableStatement).flatMap(({ declarationList }) => declarationList.declarations)
    .map(({ name, initializer }) => [name.getText(), initializer === undefined ? NaN : numberOf(initializer)]))
  const visit = (node: ts.Node): void => {
    readDefault(node, (expression) => constants.get(expression.getText()) ?? numberOf(expression))
    if (ts.isPropertySignature(node)) {
      const tags = ts.getJSDocTags(node).filter(({ tagName }) => tagName.text === 'defaultValue')
      for (const { comment } of tags) docstrings.put(node.name.getText(), ...written(String(ts.getTextOfJSDocComment(comment))))
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
}

/** Every option of the file whose default is a number. */
function * defaultsOf (schema: unknown, name: string): Generator<readonly [name: string, value: number]> {
  if (typeof schema !== 'object' || schema === null) return
  const { default: value, properties, ...others } = Object(schema)
  if (typeof value === 'number') yield [name, value]
  for (const [property, part] of Object.entries(Object(properties))) yield * defaultsOf(part, property)
  for (const part of Object.values(others)) yield * defaultsOf(part, name)
}

const defaults = [...defaultsOf(JSON.parse(readFileSync(`${root}schemas/gateway.schema.json`, 'utf8')), '')]
/** Not an option in code, or given there always. */
const inFileAlone = new Set(['port', 'requestTimeoutMs', 'workers', 'shutdownGraceMs', 'perMinute'])
/** Where it is left out there is nothing to multiply by. */
code.put('priceFactor', 1)

t.test('what the schema of the file says', async (t) => {
  t.ok(defaults.length > 40, `${defaults.length} numbers`)
  for (const [name, value] of defaults) {
    t.ok(code.of(name).includes(value), `${name}: ${value} in the code`)
    if (!inFileAlone.has(name)) t.ok(docstrings.of(name).includes(value), `${name}: ${value} in its docstring`)
  }
})

t.test('what the rows of the pages say', async (t) => {
  const pages = ['configuration', 'keys-and-limits'].map((page) => readFileSync(`${root}docs/${page}.md`, 'utf8')).join('\n')
  let rows = 0
  for (const [, names = '', told = ''] of pages.matchAll(/^\| `([^|]+)`[^|]* \| ([^|]+) \|/gm)) {
    const name = /\w+$/.exec(names)?.[0] ?? ''
    const [number] = /^[\d,]+(?: MiB)?$/.test(told) ? written(told) : []
    if (number === undefined) continue
    t.ok(code.of(name).includes(number), `${names}: ${told}`)
    rows += 1
  }
  t.ok(rows > 20, `${rows} rows`)
})
