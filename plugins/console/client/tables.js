/* global document, Element */
/** Tables of what was counted since the start. */
import { duration, failures, money, percent, refusals, short, state } from './numbers.js'
import { byId } from './tiles.js'

/** The alert rules have the same threshold. */
const lowBalance = 0.1

/** In the order of their columns. */
const typeNames = {
  input: 'input',
  cache_read: 'cache read',
  cache_write_5m: 'write 5m',
  cache_write_1h: 'write 1h',
  cache_write: 'write',
  tool_input: 'tools',
  output: 'output',
  reasoning: 'reasoning',
}

function element (name, text, className = '') {
  const made = document.createElement(name)
  if (text !== null) made.textContent = text
  if (className !== '') made.className = className
  return made
}

/** A long name may break after its punctuation. */
function nameCell (name) {
  const cell = element('td', null, 'name')
  for (const part of name.split(/(?<=[/:@._-])/)) cell.append(part, element('wbr', null))
  return cell
}

/** Our own identifiers, in readable form. */
const words = (name) => name.replaceAll('_', ' ')
const protocolFirst = (rows) => rows.map(([protocol, ...rest]) => [words(protocol), ...rest])

/** The first `names` columns are words, the others numbers. */
function fill (id, names, columns, rows) {
  const place = byId(id)
  if (rows.length === 0) {
    place.replaceChildren(element('p', 'nothing yet', 'none'))
    return
  }
  const table = element('table', null)
  const head = table.createTHead().insertRow()
  for (const name of names) head.append(element('th', name, 'name'))
  for (const column of columns) head.append(element('th', column))
  const rest = table.createTBody()
  for (const row of rows) {
    const line = rest.insertRow()
    for (const [index, value] of row.entries()) {
      if (value instanceof Element) {
        line.insertCell().append(value)
      } else if (index < names.length) {
        line.append(nameCell(value))
      } else {
        line.append(element('td', typeof value === 'string' ? value : short(value), value === 0 ? 'zero' : ''))
      }
    }
  }
  place.replaceChildren(table)
}

/** Turns rows of name, kind and count into one row for each name, with a column for each kind that occurs. */
function cross (rows, order) {
  const kinds = [...new Set(rows.map(([, kind]) => kind))].sort((a, b) => order.indexOf(a) - order.indexOf(b))
  const names = [...new Set(rows.map(([name]) => name))].sort()
  const counts = new Map(rows.map(([name, kind, count]) => [`${name}\n${kind}`, count]))
  return { kinds, rows: names.map((name) => [name, ...kinds.map((kind) => counts.get(`${name}\n${kind}`) ?? 0)]) }
}

const least = (rows) => [...rows].sort((a, b) => a.at(-1) - b.at(-1))
const most = (rows) => [...rows].sort((a, b) => b.at(-1) - a.at(-1))

function meterOf (share) {
  const meter = document.createElement('meter')
  Object.assign(meter, { min: 0, max: 1, low: lowBalance, high: 0.25, optimum: 1, value: share })
  return meter
}

function inUnit (value, unit) {
  return unit === 'tokens' ? `${short(value)} tokens` : money(value, unit)
}

function budgetLine ({ group, key, unit, period, timezone, amount, spent, held, resetsAt, resets }) {
  const left = amount - spent - held
  const share = Math.max(0, left) / amount
  return [
    key === null ? group : `${group} / ${key}`,
    period === 'total' ? 'for ever' : `${period}, ${timezone}`,
    inUnit(amount, unit),
    inUnit(spent, unit),
    held === 0 ? 0 : inUnit(held, unit),
    element('span', inUnit(left, unit), share < lowBalance ? 'low' : ''),
    meterOf(share),
    resets === null ? 'never' : `${resets}, in ${duration(resetsAt - Date.now())}`,
  ]
}

/** Text below a table. */
function note (id, ...texts) {
  if (texts.length > 0) byId(id).append(element('p', texts.join('; '), 'none'))
}

/** Says how many rows a table leaves out, and the totals of all rows. */
function noteRest (id, shown, rows, totals) {
  note(id, ...rows > shown ? [`and ${short(rows - shown)} more rows`] : [], ...rows > 1 ? [`${totals.join(', ')} in all`] : [])
}

/** Says how many budgets the table leaves out. */
function showMore (count, isCut) {
  if (count === 0 && !isCut) return
  const left = count === 0 ? 'budgets of keys that were not looked at' : `${short(count)} budgets further from their limits`
  note('budgets', `and ${isCut && count > 0 ? 'at least ' : ''}${left}`)
}

function showCosts ({ costs, allCosts, labelCosts, budgets, moreBudgets, budgetsCut }) {
  fill('costs', ['group', 'model'], ['cost'], costs.map(([group, model, currency, cost]) => [group, model, money(cost, currency)]))
  noteRest('costs', costs.length, allCosts.rows, allCosts.totals.map(([currency, cost]) => money(cost, currency)))
  fill(
    'label-costs', ['label', 'value'], ['cost'], labelCosts.map(([label, value, currency, cost]) => [label, value, money(cost, currency)])
  )
  fill('budgets', ['whose', 'period'], ['budget', 'spent', 'held', 'left', '', 'begins anew'], (budgets ?? []).map(budgetLine))
  showMore(moreBudgets, budgetsCut)
  if (budgets === null) byId('budgets').replaceChildren(element('p', 'the state does not answer', 'none'))
}

export function showTables (tables) {
  showCosts(tables)
  const types = Object.keys(typeNames).filter((type) => tables.tokens.some((row) => row.types[type] > 0))
  fill('tokens', ['group', 'model'], ['total', ...types.map((type) => typeNames[type])],
    tables.tokens.map(({ group, model, total, types: counts }) => [group, model, total, ...types.map((type) => counts[type] ?? 0)]))
  noteRest('tokens', tables.tokens.length, tables.allTokens.rows, [`${short(tables.allTokens.total)} tokens`])
  const outcomes = cross(protocolFirst(tables.outcomes), ['ok', ...refusals, ...failures, 'client_abort'])
  fill('outcomes', ['protocol'], outcomes.kinds.map(words), outcomes.rows)
  fill('refused', ['reason'], ['requests'], tables.refused.map(([reason, count]) => [words(reason), count]))
  fill('limited', ['group', 'limit'], ['requests'], tables.limited)
  fill('invalid', ['protocol', 'keyword'], ['requests'], protocolFirst(tables.invalid))
  fill('repaired', ['protocol', 'kind'], ['requests'], tables.repaired.map(([protocol, kind, count]) => [
    words(protocol), words(kind), count,
  ]))
  fill('members', ['upstream', 'state'], ['running', 'back in, s'], tables.members)
  const upstreams = cross(tables.upstreams, ['2xx', '3xx', '4xx', '5xx', 'error'])
  fill('upstreams', ['upstream'], upstreams.kinds, upstreams.rows)
  fill('broken', ['protocol', 'what'], ['replies'], most([
    ...tables.aborts.map(([protocol, side, count]) => [words(protocol), `broken by ${side}`, count]),
    ...tables.missing.map(([protocol, reason, count]) => [words(protocol), `no usage: ${words(reason)}`, count]),
  ]))
  const happened = Object.entries(state.points.at(-1).lookups).filter(([, count]) => count > 0)
  const lookups = happened.map(([result, count]) => [`lookups: ${words(result)}`, count])
  fill('keys', ['what'], ['count'], [...tables.cache.map(([kind, count]) => [`entries: ${kind}`, count]), ...lookups])
  fill('balances', ['group'], ['left', ''], least(tables.balances).map(([group, share]) => [
    group, element('span', percent(share), share < lowBalance ? 'low' : ''), meterOf(share),
  ]))
}
