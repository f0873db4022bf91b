/**
 * What the package shows of itself to those who import it, as text: `npm run api` writes it to docs/api.md, and a test compares.
 * A change of the public surface is then a change that a review sees.
 */
import { writeFileSync } from 'node:fs'
import { argv } from 'node:process'
import ts from 'typescript'
import { checker, entries, program, root } from '../types/program.js'

const printer = ts.createPrinter({ removeComments: true })

function textOf (symbol: ts.Symbol): string {
  const target = (symbol.flags & ts.SymbolFlags.Alias) === 0 ? symbol : checker.getAliasedSymbol(symbol)
  const [declaration] = target.declarations ?? []
  if (declaration === undefined) return symbol.name
  if (ts.isInterfaceDeclaration(declaration) || ts.isTypeAliasDeclaration(declaration)) {
    return printer.printNode(ts.EmitHint.Unspecified, declaration, declaration.getSourceFile())
  }
  if (ts.isVariableDeclaration(declaration) && declaration.type !== undefined) return `${symbol.name}: ${declaration.type.getText()}`
  const type = checker.typeToString(checker.getTypeOfSymbolAtLocation(target, declaration), undefined, ts.TypeFormatFlags.NoTruncation)
  return `${symbol.name}: ${type.replaceAll(/import\("[^"]*"\)\./g, '')}`
}

/** The report, as it is to stand in docs/api.md. */
export function apiReport (): string {
  const parts = Object.entries(entries).map(([name, path]) => {
    const file = program.getSourceFile(root + path)
    const module = file === undefined ? undefined : checker.getSymbolAtLocation(file)
    const symbols = module === undefined ? [] : checker.getExportsOfModule(module)
    const texts = symbols.sort((one, other) => one.name < other.name ? -1 : 1).map((symbol) => textOf(symbol))
    return `## ${name}\n\n${texts.map((text) => `\`\`\`ts\n${text}\n\`\`\``).join('\n\n')}\n`
  })
  return `# The public surface\n\nMade by \`npm run api\`; a test compares. Change it on purpose.\n\n${parts.join('\n')}`
}

if (argv[2] === '--write') writeFileSync(`${root}docs/api.md`, apiReport())
