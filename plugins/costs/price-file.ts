/** A price list in a file: ours in YAML or JSON, or the community's, distinguished by their shape. */
import { createRequire } from 'node:module'
import type * as Yaml from 'yaml'
import { isObject } from '../core/body/json-object.js'
import { parseJson } from '../core/body/parse-json.js'
import { readPlainFileNow } from '../core/config/plain-file.js'
import { repeatedName } from '../core/body/repeated-name.js'
import { plainValues, yamlMistakes, yamlSentence } from '../core/config/yaml-mistakes.js'
import { isCurrency } from './currency.js'
import { pathText, type PlacedProblem } from './price-error.js'
import type { Path, PriceProblem, PriceRow, Report } from './price-row.js'
import { isCommunityList, readCommunityList } from './read-community.js'
import { readRows } from './read-row.js'

const require = createRequire(import.meta.url)

/** Loaded on use: 70 files that an app without price lists does not need. */
function yaml (): typeof Yaml {
  return require('yaml')
}

/** The currency of the community's list. */
const communityCurrency = 'USD'

/** Models, or globs of their names, with their rows. Mistakes are added to `problems`. */
export function readPriceFile (file: string, currency: string, problems: PlacedProblem[]): Map<string, PriceRow[]> {
  const text = readText(file, problems)
  const value = text === null ? null : parse(text, file, problems)
  if (text === null || value === undefined) return new Map()
  const found: PriceProblem[] = []
  const models = readList(value, currency, (path, message) => found.push({ path, message }))
  if (found.length > 0) problems.push(...placed(found, file, text))
  return models
}

/** The models of a list in our form, as in the option `prices.models`. */
export function readModels (models: unknown, path: Path, currency: string, report: Report): Map<string, PriceRow[]> {
  if (isObject(models)) {
    for (const name of Object.keys(models)) {
      // It would be taken literally, and no model would have its prices.
      if (name.includes('?')) report([...path, name], 'has a ? in its name: only * stands for what is not said')
    }
    return new Map(Object.entries(models).map(([name, rows]) => [name, readRows(rows, [...path, name], currency, report)]))
  }
  report(path, 'must be an object of models')
  return new Map()
}

function readText (file: string, problems: PlacedProblem[]): string | null {
  try {
    return readPlainFileNow(file)
  } catch (error) {
    problems.push({ place: file, line: null, path: '', message: `cannot be read (${String(Reflect.get(Object(error), 'code'))})` })
    return null
  }
}

/** JSON is parsed by the platform, in a hundredth of the time. Undefined for what is neither. */
function parse (text: string, file: string, problems: PlacedProblem[]): unknown {
  // YAML has braces, too, and its parser says where it is wrong.
  const json = /^\s*\{/.test(text) ? parseJson(text) : undefined
  if (json === undefined) return parseYaml(text, file, problems)
  // The community's list has had models twice again and again (BerriAI/litellm#30147); its own project reads the last of them, too.
  const repeated = isObject(json) && isCommunityList(json) ? null : repeatedName(text)
  if (repeated === null) return json
  problems.push({ place: file, line: repeated.line, path: pathText(repeated.path), message: 'the same name stands twice' })
  return undefined
}

function parseYaml (text: string, file: string, problems: PlacedProblem[]): unknown {
  const { LineCounter, parseDocument, visit } = yaml()
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const [mistake] = yamlMistakes(document, visit)
  if (mistake === undefined) return document.toJS(plainValues)
  const { code, at } = mistake
  const { line, col } = lines.linePos(at)
  const message = `not valid YAML or JSON: ${yamlSentence(code, text, at)}`
  problems.push({ place: `${file}:${line}:${col}`, line: null, path: '', message })
  return undefined
}

function readList (value: unknown, currency: string, report: Report): Map<string, PriceRow[]> {
  if (!isObject(value)) report([], 'must be an object')
  else if (value['models'] !== undefined) return readOwnList(value, currency, report)
  else if (isCommunityList(value)) {
    if (currency !== communityCurrency) report([], `is in ${communityCurrency}, and the gateway counts in ${currency}`)
    return readCommunityList(value, report)
  } else report([], 'is no price list: it has neither models, as ours, nor the entries of the community\'s')
  return new Map()
}

function readOwnList (value: Readonly<Record<string, unknown>>, currency: string, report: Report): Map<string, PriceRow[]> {
  const { currency: own = currency, models, $schema: _, ...unknown } = value
  for (const name of Object.keys(unknown)) report([name], 'is not known')
  if (!isCurrency(own)) report(['currency'], 'is not a currency of ISO 4217')
  else if (own !== currency) report(['currency'], `is ${own}, and the gateway counts in ${currency}`)
  return readModels(models, ['models'], currency, report)
}

function placed (problems: readonly PriceProblem[], file: string, text: string): PlacedProblem[] {
  const lineOf = lineFinder(text)
  return problems.map(({ path, message }) => ({ place: file, line: lineOf(path), path: pathText(path), message }))
}

/** Finds the line of a path; if there is nothing, that of the nearest parent. */
function lineFinder (text: string): (path: Path) => number {
  const { LineCounter, parseDocument } = yaml()
  const lines = new LineCounter()
  const { contents } = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  return (path) => {
    let node: unknown = contents
    let at = 0
    for (const part of path) {
      const next = childOf(node, part)
      if (next === null) break
      node = next.node
      at = next.at
    }
    return lines.linePos(at).line
  }
}

interface Ranged {
  readonly range: number[]
}

function childOf (node: unknown, part: string | number): { node: unknown, at: number } | null {
  const { isMap, isSeq } = yaml()
  if (isMap<Ranged>(node)) {
    const pair = node.items.find(({ key }) => String(key) === part)
    return pair === undefined ? null : { node: pair.value, at: Number(pair.key.range[0]) }
  }
  const item = isSeq<Ranged>(node) ? node.items[Number(part)] : undefined
  return item === undefined ? null : { node: item, at: Number(item.range[0]) }
}
