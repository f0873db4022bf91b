/** A price list in a file: ours in YAML or JSON, or the community's, distinguished by their shape. */
import { createRequire } from 'node:module'
import type * as Yaml from 'yaml'
import { isObject } from '../core/body/json-object.js'
import { parseJson } from '../core/body/parse-json.js'
import { joinPath } from '../core/config/join-path.js'
import { readPlainFileNow } from '../core/config/plain-file.js'
import { repeatedName } from '../core/body/repeated-name.js'
import { readYaml, yamlLines } from '../core/config/yaml-text.js'
import { isCurrency } from './currency.js'
import { Place } from './place.js'
import type { PlacedProblem } from './price-error.js'
import type { PriceRow } from './price-row.js'
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
  let lineOf: ReturnType<typeof yamlLines> | null = null
  const top = new Place('', (path, message) => {
    // Parsed once more for the lines of its mistakes, if it has any.
    lineOf ??= yamlLines(yaml(), text)
    problems.push({ place: file, line: lineOf(path) ?? 1, path, message })
  })
  return readList(value, top, currency)
}

/** The models of a list in our form, as in the option `prices.models`. */
export function readModels (models: unknown, at: Place, currency: string): Map<string, PriceRow[]> {
  if (isObject(models)) {
    for (const name of Object.keys(models)) {
      // It would be taken literally, and no model would have its prices.
      if (name.includes('?')) at.in(name).report('has a ? in its name: only * stands for what is not said')
    }
    return new Map(Object.entries(models).map(([name, rows]) => [name, readRows(rows, at.in(name), currency)]))
  }
  at.report('must be an object of models')
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
  const { path, line } = repeated
  problems.push({ place: file, line, path: path.reduce<string>(joinPath, ''), message: 'the same name stands twice' })
  return undefined
}

function parseYaml (text: string, file: string, problems: PlacedProblem[]): unknown {
  const { mistakes: [mistake], value } = readYaml(yaml(), text)
  if (mistake === undefined) return value()
  const { line, column, message } = mistake
  problems.push({ place: `${file}:${line}:${column}`, line: null, path: '', message: `not valid YAML or JSON: ${message}` })
  return undefined
}

function readList (value: unknown, at: Place, currency: string): Map<string, PriceRow[]> {
  if (!isObject(value)) at.report('must be an object')
  else if (value['models'] !== undefined) return readOwnList(value, at, currency)
  else if (isCommunityList(value)) {
    if (currency !== communityCurrency) at.report(`is in ${communityCurrency}, and the gateway counts in ${currency}`)
    return readCommunityList(value, at)
  } else at.report('is no price list: it has neither models, as ours, nor the entries of the community\'s')
  return new Map()
}

function readOwnList (value: Readonly<Record<string, unknown>>, at: Place, currency: string): Map<string, PriceRow[]> {
  const { currency: own = currency, models, $schema: _, ...unknown } = value
  for (const name of Object.keys(unknown)) at.in(name).report('is not known')
  if (!isCurrency(own)) at.in('currency').report('is not a currency of ISO 4217')
  else if (own !== currency) at.in('currency').report(`is ${own}, and the gateway counts in ${currency}`)
  return readModels(models, at.in('models'), currency)
}
