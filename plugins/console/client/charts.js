/* global document, getComputedStyle */
/** The charts of the last ten minutes. */
import { failures, quantileOf, rateOf, refusals, seconds, short, state } from './numbers.js'
import { byId } from './tiles.js'

const { uPlot: Chart } = globalThis

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()

export const charts = [
  {
    id: 'requests-chart',
    filled: true,
    format: short,
    series: [
      ['ok', 'green', rateOf('outcomes', ['ok'])],
      ['refused', 'orange', rateOf('outcomes', refusals)],
      ['failed', 'red', rateOf('outcomes', failures)],
      ['caller left', 'purple', rateOf('outcomes', ['client_abort'])],
    ],
  },
  {
    id: 'tokens-chart',
    filled: true,
    format: short,
    series: [
      ['input', 'blue', rateOf('tokens', ['input', 'tool_input'])],
      ['cache read', 'sky', rateOf('tokens', ['cache_read'])],
      ['cache write', 'purple', rateOf('tokens', ['cache_write', 'cache_write_5m', 'cache_write_1h'])],
      ['output', 'green', rateOf('tokens', ['output'])],
      ['reasoning', 'orange', rateOf('tokens', ['reasoning'])],
    ],
  },
  {
    id: 'latency-chart',
    format: seconds,
    series: [
      ['duration P50', 'blue', quantileOf('duration', 0.5)],
      ['duration P95', 'purple', quantileOf('duration', 0.95)],
      ['first chunk P50', 'green', quantileOf('firstChunk', 0.5)],
      ['first chunk P95', 'orange', quantileOf('firstChunk', 0.95)],
    ],
  },
  {
    id: 'overhead-chart',
    format: seconds,
    series: [
      ['P50', 'blue', quantileOf('overhead', 0.5)],
      ['P95', 'purple', quantileOf('overhead', 0.95)],
      ['P99', 'orange', quantileOf('overhead', 0.99)],
    ],
  },
]

export function sizeOf (place) {
  return { width: place.clientWidth, height: place.clientWidth < 420 ? 170 : 210 }
}

/** Without a cursor, the legend shows the newest values. */
export function draw (chart) {
  chart.plot.setData(chartData(chart))
  if (!(chart.plot.cursor.left >= 0)) chart.plot.setLegend({ idx: state.points.length - 1 })
}

function chartData ({ series }) {
  return [state.points.map(({ at }) => at / 1_000), ...series.map(([, , read]) => state.points.map((_, index) => read(index)))]
}

export function openChart (chart) {
  const place = byId(chart.id)
  chart.plot?.destroy()
  chart.plot = new Chart({
    ...sizeOf(place),
    // Room above the highest line for half a number of the axis.
    padding: [7, null, null, null],
    cursor: { sync: { key: 'console' }, points: { size: 6 } },
    scales: {
      y: {
        range (_plot, _low, high) {
          chart.empty = !(high > 0)
          return [0, chart.empty ? 1 : high * 1.06]
        },
      },
    },
    axes: axesOf(chart),
    series: linesOf(chart),
  }, chartData(chart), place)
}

function axesOf (chart) {
  const axis = {
    stroke: colour('dim'), grid: { stroke: colour('line'), width: 1 }, ticks: { show: false }, font: '11px system-ui, sans-serif',
  }
  return [
    {
      ...axis,
      values: (_plot, ticks) => ticks.map((tick) => new Date(tick * 1_000).toLocaleTimeString('en-GB', {
        hour: '2-digit', minute: '2-digit', second: '2-digit',
      })),
      space: 75,
      size: 28,
      incrs: [5, 10, 15, 30, 60, 120, 300],
    },
    // An empty scale has no numbers.
    { ...axis, size: 58, values: (_plot, ticks) => ticks.map((tick) => chart.empty && tick > 0 ? '' : chart.format(tick)) },
  ]
}

function linesOf ({ series, filled, format }) {
  return [
    { label: 'at', value: (_plot, value) => value === null ? '' : new Date(value * 1_000).toLocaleTimeString('en-GB') },
    ...series.map(([label, name]) => ({
      label,
      stroke: colour(name),
      width: 2,
      ...filled && { fill: `color-mix(in srgb, ${colour(name)} 7%, transparent)` },
      points: { show: false },
      spanGaps: false,
      value: (_plot, value) => format(value),
    })),
  ]
}
