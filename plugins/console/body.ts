/** Content of the page before its script fills it: elements with ids, and a text for browsers without scripts. */
const tiles = [
  ['rate', 'Requests'], ['failed', 'Failed'], ['input', 'Tokens in'], ['output', 'Tokens out'],
  ['active', 'In progress'], ['first-chunk', 'First chunk, P95'], ['overhead', 'Overhead, P95'], ['cache', 'Key cache hits'],
] as const

const charts = [
  ['requests-chart', 'Requests a second'], ['tokens-chart', 'Tokens a second'],
  ['latency-chart', 'Duration and first chunk'], ['overhead-chart', 'The gateway\'s own time'],
] as const

/** The counters begin with the process: a time that began before it is as long as the process runs. */
const costTimes = '<select id="cost-time" aria-label="Time of the costs"><option value="">since the start</option>' +
  '<option value="today">today (UTC)</option><option value="week">7 days</option><option value="month">this month</option></select>'

const wideTables = [
  ['tokens', 'Tokens by group and model since the start'], ['costs', `Cost by group and model ${costTimes}`], ['budgets', 'Budgets now'],
  ['outcomes', 'Requests by protocol and outcome since the start'],
] as const

const tables = [
  ['label-costs', 'Cost by label, of the same time'], ['members', 'Upstreams now'], ['upstreams', 'Replies of upstreams'],
  ['balances', 'Balances'], ['keys', 'Key cache'], ['refused', 'Keys refused'],
  ['limited', 'Limits reached'], ['invalid', 'Bodies refused'], ['broken', 'Broken streams, missing usage'], ['repaired', 'Paths repaired'],
] as const

type Titled = readonly [id: string, title: string]

function tableSection ([id, title]: Titled): string {
  return `<section><h2>${title}</h2><div class="scroll" id="${id}"></div></section>`
}

export const body = `
<header>
<span id="state"></span><h1>LLM gateway</h1><span id="about">connecting</span><button id="theme" type="button">theme</button>
</header>
<main>
<noscript><p>This page needs JavaScript. The same numbers are at the metrics route.</p></noscript>
<div class="tiles">${tiles.map(([id, title]) => `<section class="tile" id="${id}"><h2>${title}</h2><b>–</b></section>`).join('')}</div>
<div class="grid charts">${charts.map(([id, title]) => `<section><h2>${title}</h2><div id="${id}"></div></section>`).join('')}</div>
<div class="grid">${wideTables.map((table) => tableSection(table).replace('<section', '<section class="wide"')).join('')}</div>
<div class="columns">${tables.map(tableSection).join('')}</div>
</main>
`
