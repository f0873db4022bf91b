/* global AbortSignal, document, fetch, localStorage, location, matchMedia, ResizeObserver */
/** Fetches new points every two seconds, draws the charts and fills the tables. */
import { charts, draw, openChart, sizeOf } from './charts.js'
import { duration, goesOn, short, state } from './numbers.js'
import { showTables } from './tables.js'
import { byId, showTiles } from './tiles.js'

const pollMs = 2_000
const timeoutMs = 5_000
const keepMs = 600_000
const dataUrl = `${location.pathname.replace(/\/$/, '')}/data`

function show (data) {
  byId('about').textContent = `${data.tables.version} · up ${duration(Date.now() - data.startedAt)} · ${short(data.tables.series)} series`
  showTiles()
  showTables(data.tables)
  for (const chart of charts) draw(chart)
}

function take (data) {
  const before = goesOn(data) ? state.points : []
  state.startedAt = data.startedAt
  state.bounds = data.bounds
  const points = [...before, ...data.points]
  // By the gateway's clock: the reader's may be wrong by more than is kept.
  state.points = points.filter(({ at }) => at > points.at(-1).at - keepMs)
  if (state.points.length > 0) show(data)
}

/** `live` or `lost`; the figures of a gateway that does not answer are old, and look so. */
function tell (condition) {
  document.body.className = condition
  byId('state').className = condition
  if (condition === 'lost') byId('about').textContent = 'does not answer, still asking'
}

async function poll () {
  try {
    const query = `after=${state.points.at(-1)?.at ?? 0}&of=${state.startedAt}&costs=${byId('cost-time').value}`
    const reply = await fetch(`${dataUrl}?${query}`, { signal: AbortSignal.timeout(timeoutMs) })
    take(await reply.json())
    tell('live')
  } catch {
    tell('lost')
  }
  setTimeout(poll, pollMs)
}

/** A browser that keeps no data of sites throws where it is asked for its storage: a theme then lasts as long as the page. */
function storage () {
  try {
    return localStorage
  } catch {
    return null
  }
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
  storage()?.setItem('theme', theme)
  setTheme(theme)
})
const preferred = matchMedia('(prefers-color-scheme: dark)')
const themeNow = () => storage()?.getItem('theme') ?? (preferred.matches ? 'dark' : 'light')
preferred.addEventListener('change', () => setTheme(themeNow()))
setTheme(themeNow())

new ResizeObserver(() => {
  for (const chart of charts) chart.plot.setSize(sizeOf(byId(chart.id)))
}).observe(document.querySelector('main'))

poll()
