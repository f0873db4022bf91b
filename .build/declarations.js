/** The declarations that the entries of the package lead to, with their comments: what only our own files use is left out. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import ts from 'typescript'

/** The file that a specifier in `path` names, null for one of another package. */
function fileOf (path, { text }) {
  return text.startsWith('.') ? join(dirname(path), text.replace(/\.js$/, '.d.ts')) : null
}

const declared = (statement) => statement.declarationList?.declarations.map(({ name }) => name.text) ?? [statement.name?.text ?? 'default']

/** Imported and exported names, each with the file and the name that it refers to. */
function linksOf (path, { moduleSpecifier, importClause, exportClause }) {
  const from = moduleSpecifier === undefined ? path : fileOf(path, moduleSpecifier)
  const elements = (importClause?.namedBindings ?? exportClause)?.elements ?? []
  return elements.map((element) => [element.name.text, { element, from, name: (element.propertyName ?? element.name).text }])
}

function readDeclarations (path) {
  const source = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.ES2023, true)
  const file = { path, source, own: new Map(), imported: new Map(), exported: new Map(), stars: [], always: [] }
  for (const statement of source.statements) {
    if (ts.isImportDeclaration(statement)) {
      for (const [name, link] of linksOf(path, statement)) file.imported.set(name, link)
    } else if (ts.isExportDeclaration(statement)) {
      for (const [name, link] of linksOf(path, statement)) file.exported.set(name, link)
      if (statement.exportClause === undefined) file.stars.push(fileOf(path, statement.moduleSpecifier))
    } else if (ts.isModuleDeclaration(statement)) {
      // Additions to another package's types apply wherever the file is read.
      file.always.push(statement)
    } else {
      for (const name of declared(statement)) file.own.set(name, [...file.own.get(name) ?? [], statement])
    }
  }
  return file
}

/** Names of properties and parameters refer to nothing. */
function isUse (node) {
  return ts.isIdentifier(node) && node.parent.name !== node && node.parent.right !== node
}

/** The text of a statement; imports and exports without the unused names. */
function textOf ({ text }, kept, statement) {
  const list = statement.importClause?.namedBindings ?? statement.exportClause
  if (list === undefined) return kept.has(statement) || ts.isExportDeclaration(statement) ? text.slice(statement.pos, statement.end) : ''
  const elements = list.elements.filter((element) => kept.has(element)).map(({ pos, end }) => text.slice(pos, end).trim())
  if (elements.length === 0) return ''
  // A comment above an import is about the file, for readers of its source.
  const start = ts.isImportDeclaration(statement) ? `\n${text.slice(statement.getStart(), list.pos)}` : text.slice(statement.pos, list.pos)
  return `${start} { ${elements.join(', ')} }${text.slice(list.end, statement.end)}`
}

/** Tabs for four spaces each, as in the code. */
const indented = (text) => text.replaceAll(/^(?: {4})+/gm, (spaces) => '\t'.repeat(spaces.length / 4))

/** What remains of a file, empty for nothing. An empty export makes a module of a file without another one. */
function leftOf ({ source }, kept) {
  const text = source.statements.map((statement) => textOf(source, kept, statement)).join('').trim()
  return text === '' ? '' : indented(/^export /m.test(text) ? `${text}\n` : `${text}\nexport {};\n`)
}

/** Path and text of each file that remains. */
export function publicDeclarations (entries) {
  const files = new Map()
  const kept = new Set()
  function open (path) {
    if (files.has(path)) return files.get(path)
    const file = readDeclarations(path)
    files.set(path, file)
    for (const { from } of [...file.imported.values(), ...file.exported.values()]) if (from !== null) open(from)
    for (const statement of file.always) keep(file, statement)
    return file
  }
  function keep (file, node) {
    if (kept.has(node)) return
    kept.add(node)
    follow(file, node)
  }
  function follow (file, node) {
    if (isUse(node)) followName(file, node.text)
    if (ts.isImportTypeNode(node)) followExport(open(fileOf(file.path, node.argument.literal)), node.qualifier.getText(file.source))
    ts.forEachChild(node, (child) => follow(file, child))
  }
  function followName (file, name) {
    for (const statement of file.own.get(name) ?? []) keep(file, statement)
    followLink(file.imported.get(name))
  }
  function followLink (link, file) {
    if (link === undefined || kept.has(link.element)) return
    kept.add(link.element)
    if (link.from === file?.path) followName(file, link.name)
    else if (link.from !== null) followExport(open(link.from), link.name)
  }
  function followExport (file, name) {
    followLink(file.exported.get(name), file)
    if (file.own.has(name)) followName(file, name)
    for (const star of file.stars) followExport(open(star), name)
  }
  function followAll (file) {
    for (const name of [...file.own.keys(), ...file.exported.keys()]) followExport(file, name)
    for (const star of file.stars) followAll(open(star))
  }
  for (const entry of entries) followAll(open(entry))
  return [...files.values()].map((file) => [file.path, leftOf(file, kept)]).filter(([, text]) => text !== '')
}
