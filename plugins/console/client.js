/* global document, fetch, getComputedStyle, localStorage, location, matchMedia, Element, ResizeObserver */
/** The script of the page: asks for new points every two seconds, draws the charts and fills the tables. */

const pollMs = 2_000
const keepMs = 600_000
/** Rates and quantiles are over this many points: ten seconds. */
const span = 5

const { uPlot: Chart } = globalThis
const dataUrl = `${location.pathname.replace(/\/$/, '')}/data`
const byId = (id) => document.getElementById(id)
const sum = (values) => values.reduce((total, value) => total + value, 0)

const failures = ['upstream_error', 'gateway_error', 'timeout', 'truncated']
const refusals = ['client_error', 'auth_error', 'limited']
const inputTypes = ['input', 'cache_read', 'cache_write_5m', 'cache_write_1h', 'cache_write', 'tool_input']
const outputTypes = ['output', 'reasoning']
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

let points = []
let bounds = {}
let startedAt = 0

// Numbers

const picked = (counts, names) => sum(names.map((name) => counts[name] ?? 0))

function pastOf (index) {
  return points[Math.max(0, index - span)]
}

/** How fast `read(point)` grew up to a point, per second. */
function rateAt (index, read) {
  const now = points[index]
  const past = pastOf(index)
  return now === past ? null : Math.max(0, read(now) - read(past)) / (now.at - past.at) * 1_000
}

/** A quantile of what came in up to a point, by linear interpolation in its bucket, as PromQL does. */
function quantileAt (index, name, quantile) {
  const limits = bounds[name] ?? []
  const now = points[index][name]
  const past = pastOf(index)[name]
  const counts = now.map((count, bucket) => count - (past[bucket] ?? 0))
  const rank = sum(counts) * quantile
  if (!(rank > 0)) return null
  let reached = 0
  for (const [bucket, count] of counts.entries()) {
    if (reached + count >= rank) {
      const lower = bucket === 0 ? 0 : limits[bucket - 1]
      const upper = limits[bucket] ?? lower
      return lower + (upper - lower) * (rank - reached) / count
    }
    reached += count
  }
  return null
}

function short (value) {
  if (value === null || value === undefined) return '–'
  const size = Math.abs(value)
  const [unit, by] = size >= 1e9 ? ['G', 1e9] : size >= 1e6 ? ['M', 1e6] : size >= 1e4 ? ['k', 1e3] : ['', 1]
  const scaled = value / by
  return (Math.abs(scaled) >= 100 || Number.isInteger(scaled) ? Math.round(scaled) : Number(scaled.toPrecision(3))).toLocaleString('en') + unit
}

function seconds (value) {
  if (value === null || value === undefined) return '–'
  if (value < 0.001) return `${Number((value * 1e6).toPrecision(3))} µs`
  if (value < 1) return `${Number((value * 1e3).toPrecision(3))} ms`
  return value < 120 ? `${Number(value.toPrecision(3))} s` : `${Number((value / 60).toPrecision(3))} min`
}

const percent = (value) => value === null ? '–' : `${Number((value * 100).toPrecision(3))} %`

function duration (ms) {
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 1) return 'less than a minute'
  if (minutes < 120) return `${minutes} min`
  return minutes < 2_880 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1_440)} days`
}

// Tiles

function tile (id, text, unit = '', bad = false) {
  const place = byId(id).querySelector('b')
  place.textContent = text
  if (unit !== '') {
    const small = document.createElement('small')
    small.textContent = unit
    place.append(small)
  }
  byId(id).classList.toggle('bad', bad)
}

function showTiles () {
  const last = points.length - 1
  const requests = rateAt(last, (point) => sum(Object.values(point.outcomes)))
  const failed = rateAt(last, (point) => picked(point.outcomes, failures))
  const lookups = rateAt(last, (point) => sum(Object.values(point.lookups)))
  const hits = rateAt(last, (point) => picked(point.lookups, ['hit', 'negative_hit']))
  const failedShare = requests > 0 ? failed / requests : null
  tile('rate', short(requests), '/s')
  tile('failed', percent(failedShare), '', failedShare > 0.01)
  tile('input', short(rateAt(last, (point) => picked(point.tokens, inputTypes))), '/s')
  tile('output', short(rateAt(last, (point) => picked(point.tokens, outputTypes))), '/s')
  tile('active', short(points[last].active))
  tile('first-chunk', seconds(quantileAt(last, 'firstChunk', 0.95)))
  tile('overhead', seconds(quantileAt(last, 'overhead', 0.95)))
  tile('cache', percent(lookups > 0 ? hits / lookups : null))
}

// Charts

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()

const charts = [
  {
    id: 'requests-chart',
    format: short,
    series: [
      ['ok', 'green', (index) => rateAt(index, (point) => picked(point.outcomes, ['ok']))],
      ['refused', 'orange', (index) => rateAt(index, (point) => picked(point.outcomes, refusals))],
      ['failed', 'red', (index) => rateAt(index, (point) => picked(point.outcomes, failures))],
      ['caller left', 'purple', (index) => rateAt(index, (point) => picked(point.outcomes, ['client_abort']))],
    ],
  },
  {
    id: 'tokens-chart',
    format: short,
    series: [
      ['input', 'blue', (index) => rateAt(index, (point) => picked(point.tokens, ['input', 'tool_input']))],
      ['cache read', 'sky', (index) => rateAt(index, (point) => picked(point.tokens, ['cache_read']))],
      ['cache write', 'purple', (index) => rateAt(index, (point) => picked(point.tokens, ['cache_write', 'cache_write_5m', 'cache_write_1h']))],
      ['output', 'green', (index) => rateAt(index, (point) => picked(point.tokens, ['output']))],
      ['reasoning', 'orange', (index) => rateAt(index, (point) => picked(point.tokens, ['reasoning']))],
    ],
  },
  {
    id: 'latency-chart',
    format: seconds,
    series: [
      ['duration P50', 'blue', (index) => quantileAt(index, 'duration', 0.5)],
      ['duration P95', 'purple', (index) => quantileAt(index, 'duration', 0.95)],
      ['first chunk P50', 'green', (index) => quantileAt(index, 'firstChunk', 0.5)],
      ['first chunk P95', 'orange', (index) => quantileAt(index, 'firstChunk', 0.95)],
    ],
  },
  {
    id: 'overhead-chart',
    format: seconds,
    series: [
      ['P50', 'blue', (index) => quantileAt(index, 'overhead', 0.5)],
      ['P95', 'purple', (index) => quantileAt(index, 'overhead', 0.95)],
      ['P99', 'orange', (index) => quantileAt(index, 'overhead', 0.99)],
    ],
  },
]

function sizeOf (place) {
  return { width: place.clientWidth, height: place.clientWidth < 420 ? 170 : 210 }
}

/** Where no cursor says otherwise, the legend tells the newest values. */
function draw (chart) {
  chart.plot.setData(chartData(chart))
  if (!(chart.plot.cursor.left >= 0)) chart.plot.setLegend({ idx: points.length - 1 })
}

function chartData ({ series }) {
  return [points.map(({ at }) => at / 1_000), ...series.map(([, , read]) => points.map((_, index) => read(index)))]
}

function openChart (chart) {
  const place = byId(chart.id)
  const axis = { stroke: colour('dim'), grid: { stroke: colour('line'), width: 1 }, ticks: { show: false }, font: '11px system-ui, sans-serif' }
  chart.plot?.destroy()
  chart.plot = new Chart({
    ...sizeOf(place),
    cursor: { sync: { key: 'console' }, points: { size: 6 } },
    scales: { y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.15 : 1] } },
    axes: [
      { ...axis, values: (_plot, ticks) => ticks.map((tick) => new Date(tick * 1_000).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })), space: 75, size: 28 },
      { ...axis, size: 58, values: (_plot, ticks) => ticks.map(chart.format) },
    ],
    series: [
      { label: 'at', value: (_plot, value) => value === null ? '' : new Date(value * 1_000).toLocaleTimeString('en-GB') },
      ...chart.series.map(([label, name]) => ({
        label,
        stroke: colour(name),
        width: 1.75,
        fill: `color-mix(in srgb, ${colour(name)} 8%, transparent)`,
        points: { show: false },
        spanGaps: false,
        value: (_plot, value) => chart.format(value),
      })),
    ],
  }, chartData(chart), place)
}

// Tables

function element (name, text, className = '') {
  const made = document.createElement(name)
  if (text !== null) made.textContent = text
  if (className !== '') made.className = className
  return made
}

/** `names` of the columns on the left are words, the others numbers. */
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
        const cell = element('td', value, 'name')
        cell.title = value
        line.append(cell)
      } else {
        line.append(element('td', short(value), value === 0 ? 'zero' : ''))
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

const most = (rows) => [...rows].sort((a, b) => b.at(-1) - a.at(-1))

function meterOf (share) {
  const meter = document.createElement('meter')
  Object.assign(meter, { min: 0, max: 1, low: 0.1, high: 0.25, optimum: 1, value: share })
  return meter
}

function showTables (tables) {
  const types = [...inputTypes, ...outputTypes].filter((type) => tables.tokens.some((row) => row.types[type] > 0))
  fill('tokens', ['group', 'model'], [...types.map((type) => typeNames[type]), 'total'],
    tables.tokens.map(({ group, model, total, types: counts }) => [group, model, ...types.map((type) => counts[type] ?? 0), total]))
  const outcomes = cross(tables.outcomes, ['ok', ...refusals, ...failures, 'client_abort'])
  fill('outcomes', ['protocol'], outcomes.kinds.map((kind) => kind.replace('_', ' ')), outcomes.rows)
  fill('refused', ['reason'], ['requests'], most(tables.refused))
  fill('limited', ['group', 'limit'], ['requests'], most(tables.limited))
  fill('invalid', ['protocol', 'keyword'], ['requests'], most(tables.invalid))
  fill('repaired', ['protocol', 'kind'], ['requests'], most(tables.repaired))
  const upstreams = cross(tables.upstreams, ['2xx', '3xx', '4xx', '5xx', 'error'])
  fill('upstreams', ['upstream'], upstreams.kinds, upstreams.rows)
  fill('broken', ['protocol', 'what'], ['replies'], most([
    ...tables.aborts.map(([protocol, side, count]) => [protocol, `broken by ${side}`, count]),
    ...tables.missing.map(([protocol, reason, count]) => [protocol, `no usage: ${reason.replace('_', ' ')}`, count]),
  ]))
  const lookups = Object.entries(points.at(-1).lookups).map(([result, count]) => [`lookups: ${result.replace('_', ' ')}`, count])
  fill('keys', ['what'], ['count'], [...tables.cache.map(([kind, count]) => [`entries: ${kind}`, count]), ...lookups])
  fill('balances', ['group'], ['left', ''], tables.balances.map(([group, share]) => [group, element('span', percent(share)), meterOf(share)]))
}

// Life

function show (data) {
  byId('about').textContent = `${data.tables.version} · up ${duration(Date.now() - data.startedAt)} · ${short(data.tables.series)} series`
  showTiles()
  showTables(data.tables)
  for (const chart of charts) draw(chart)
}

async function poll () {
  try {
    const reply = await fetch(`${dataUrl}?after=${points.at(-1)?.at ?? 0}`)
    const data = await reply.json()
    // Another process: what it counts does not go on where the old one stood.
    if (data.startedAt !== startedAt) points = []
    startedAt = data.startedAt
    bounds = data.bounds
    points = [...points, ...data.points].filter(({ at }) => at > Date.now() - keepMs)
    if (points.length > 0) show(data)
    byId('state').className = 'live'
  } catch {
    byId('state').className = 'lost'
  }
  setTimeout(poll, pollMs)
}

function setTheme (theme) {
  document.documentElement.dataset.theme = theme
  byId('theme').textContent = `${theme === 'dark' ? 'light' : 'dark'} theme`
  for (const chart of charts) {
    openChart(chart)
    draw(chart)
  }
}

byId('theme').addEventListener('click', (event) => {
  const [theme] = event.currentTarget.textContent.split(' ')
  localStorage.setItem('theme', theme)
  setTheme(theme)
})
const preferred = matchMedia('(prefers-color-scheme: dark)')
const themeNow = () => localStorage.getItem('theme') ?? (preferred.matches ? 'dark' : 'light')
preferred.addEventListener('change', () => setTheme(themeNow()))
setTheme(themeNow())

new ResizeObserver(() => {
  for (const chart of charts) chart.plot.setSize(sizeOf(byId(chart.id)))
}).observe(document.querySelector('main'))

poll()
