/** A price list in a file: ours in YAML or JSON, or the community's, distinguished by their shape. */
import { createRequire } from 'node:module'
import type * as Yaml from 'yaml'
import { isObject } from '../core/body/json-object.js'
import { parseJson } from '../core/body/parse-json.js'
import { readPlainFileNow } from '../core/config/plain-file.js'
import { repeatedName } from '../core/body/repeated-name.js'
import { readYaml, yamlLines } from '../core/config/yaml-text.js'
import { isCurrency } from './currency.js'
import { pathText, type PlacedProblem } from './price-error.js'
import type { Path, PriceProblem, PriceRow, Report } from './price-row.js'
import { isCommunityList, readCommunityList } from './read-community.js'
import { readRows } from './read-row.js'

const require = createRequire(import.meta.url)

/** Loaded on use: an app without price lists does not need it. */
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
    problems.push({ place: file, line: null, path: '', message: `cannot be read (${String(Object(error).code)})` })
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
  const { mistakes: [mistake], value } = readYaml(yaml(), text)
  if (mistake === undefined) return value()
  const { line, column, message } = mistake
  problems.push({ place: `${file}:${line}:${column}`, line: null, path: '', message: `not valid YAML or JSON: ${message}` })
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
  const lineOf = yamlLines(yaml(), text)
  return problems.map(({ path, message }) => {
    const place = pathText(path)
    return { place: file, line: lineOf(place) ?? 1, path: place, message }
  })
}
