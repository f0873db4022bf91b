/** What is imported says what it is, every option of the bundle and of each plugin what it is for, and what holds without it. */
import t from 'tap'
import ts from 'typescript'
import { checker, entries, program, root } from './program.js'

const entry = root + entries['fastify-llm-gateway']

/** What an entry exports, by its name: what each name stands for. */
function exportsOf (path: string): Array<readonly [name: string, symbol: ts.Symbol]> {
  const file = program.getSourceFile(path)
  const module = file === undefined ? undefined : checker.getSymbolAtLocation(file)
  const symbols = module === undefined ? [] : checker.getExportsOfModule(module)
  return symbols.map((symbol) => {
    return [symbol.name, (symbol.flags & ts.SymbolFlags.Alias) === 0 ? symbol : checker.getAliasedSymbol(symbol)]
  })
}

/** The type that an exported name stands for, without its generics. */
function optionTypes (): Array<readonly [name: string, type: ts.Type]> {
  return exportsOf(entry)
    .filter(([name]) => name.endsWith('Options') && !isResult(name))
    .map(([name, symbol]) => [name, checker.getDeclaredTypeOfSymbol(symbol)])
}

const isTold = (symbol: ts.Symbol): boolean => ts.displayPartsToString(symbol.getDocumentationComment(checker)) !== ''

/** What `proxyOptions()` makes for a mount is no option of ours, and what hosts implement has no defaults. */
const isResult = (name: string): boolean => name === 'HttpProxyOptions'
const implemented: ReadonlySet<string> = new Set(['Ledger', 'Balances', 'KeySource', 'Notes'])

function interfaceOf ({ declarations: [declaration] = [] }: ts.Symbol): string {
  const parent = declaration?.parent
  return parent !== undefined && ts.isInterfaceDeclaration(parent) ? parent.name.text : ''
}

const isOurs = (symbol: ts.Symbol): boolean => symbol.declarations?.some(
  (declaration) => declaration.getSourceFile().fileName.startsWith(`${root}plugins/`)
) === true

/** The properties of a type, of its members and of what is below them, each with the way to it. */
function * propertiesOf (type: ts.Type, path: string, seen: Set<ts.Symbol>): Generator<readonly [path: string, symbol: ts.Symbol]> {
  for (const part of type.isUnion() ? type.types : [type]) {
    if (checker.isArrayType(part)) {
      for (const element of checker.getTypeArguments(part as ts.TypeReference)) yield * propertiesOf(element, `${path}[]`, seen)
      continue
    }
    const values = part.getStringIndexType()
    if (values !== undefined) yield * propertiesOf(values, `${path}.*`, seen)
    if ((part.flags & ts.TypeFlags.Object) === 0 || part.getCallSignatures().length > 0) continue
    for (const symbol of part.getProperties()) {
      if (!isOurs(symbol) || seen.has(symbol)) continue
      seen.add(symbol)
      yield [`${path}.${symbol.name}`, symbol]
      yield * propertiesOf(checker.getTypeOfSymbol(symbol), `${path}.${symbol.name}`, seen)
    }
  }
}

t.test('every option has a docstring, and every one that may be left out its default', async (t) => {
  const seen = new Set<ts.Symbol>()
  const found = optionTypes().flatMap(([name, type]) => [...propertiesOf(type, name, seen)])
  t.ok(found.length > 100, `${found.length} options`)
  t.same(found.filter(([, symbol]) => !isTold(symbol)).map(([path]) => path), [])
  const optional = found.filter(([, symbol]) => (symbol.flags & ts.SymbolFlags.Optional) !== 0 && !implemented.has(interfaceOf(symbol)))
  t.same(
    optional.filter(([, symbol]) => !symbol.getJsDocTags(checker).some(({ name }) => name === 'defaultValue')).map(([path]) => path), []
  )
})

t.test('every plugin and function that may be imported has a docstring', async (t) => {
  for (const [name, path] of Object.entries(entries)) {
    const values = exportsOf(root + path).filter(([, symbol]) => (symbol.flags & ts.SymbolFlags.Value) !== 0)
    t.ok(values.length >= 5, `${values.length} of ${name}`)
    t.same(values.filter(([, symbol]) => !isTold(symbol)).map(([value]) => value), [])
  }
})
