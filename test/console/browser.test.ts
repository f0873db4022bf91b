import { existsSync } from 'node:fs'
import { chromium, type Browser, type Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import { groupOf, noTokens, settledRequest } from '../metrics/requests.js'
import { freePort } from '../helpers/free-port.js'
import { call, everyProtocol, listen, read, startGateway } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'

const program = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) => existsSync(path))
const options = program === undefined ? { skip: 'chromium is not installed' } : {}

// A machine may be slow to start it for the first time: the test runner's time is the limit, here and of its pages.
const launch = { executablePath: String(program), args: ['--headless', '--no-sandbox', '--disable-gpu'], timeout: 0 }

async function open (t: Test): Promise<Browser> {
  const browser = await chromium.launch(launch)
  t.teardown(() => browser.close())
  return browser
}

/** A gateway that has answered a few requests; the group's name is what a page must not take for markup. */
async function startConsole (t: Test): Promise<string> {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, {
    console: { path: '/console' },
    groups: { '<img src=x onerror=alert(1)>': { protocols: everyProtocol } },
    keys: [{ id: 'caller', group: '<img src=x onerror=alert(1)>', secret: 'sk-caller-0123456789' }],
  })
  const url = await listen(app)
  for (const stream of [false, true, true]) {
    const body = JSON.stringify({ model: 'gpt-5', stream, messages: [{ role: 'user', content: 'hi' }] })
    await read(await call(`${url}/v1/chat/completions`, { body }).reply)
    await settled.next()
  }
  return `${url}/console`
}

interface Watched {
  readonly page: Page
  readonly troubles: string[]
  readonly requests: string[]
}

async function watch (browser: Browser, url: string, look: { width: number, colorScheme: 'light' | 'dark' }): Promise<Watched> {
  const page = await browser.newPage({ viewport: { width: look.width, height: 900 }, colorScheme: look.colorScheme })
  page.setDefaultTimeout(0)
  const troubles: string[] = []
  const requests: string[] = []
  page.on('console', (message) => troubles.push(message.text()))
  page.on('pageerror', (error) => troubles.push(String(error)))
  page.on('request', (request) => requests.push(request.url()))
  await page.goto(url)
  await page.waitForSelector('#state.live')
  await page.waitForSelector('#tokens table')
  return { page, troubles, requests }
}

t.test('shows what was counted', options, async (t) => {
  const url = await startConsole(t)
  const { page, troubles, requests } = await watch(await open(t), url, { width: 1_440, colorScheme: 'light' })
  const tokens = await page.textContent('#tokens')
  t.match(tokens, 'gpt-5')
  t.match(tokens, '<img src=x onerror=alert(1)>', 'a name is text')
  t.match(await page.textContent('#outcomes'), 'chat completions')
  t.match(await page.textContent('#upstreams'), 'main')
  t.match(await page.textContent('#about'), /\d+\.\d+\.\d+ · up .* · \d+ series/)
  t.equal(await page.locator('canvas').count(), 4)
  t.ok(requests.every((address) => new URL(address).origin === new URL(url).origin), 'nothing is asked of anyone else')
  t.strictSame(troubles, [], 'no error, no breach of its own policy')
})

t.test('shows what was spent, by whom, and what is left of budgets', options, async (t) => {
  const upstream = await startUpstream(t)
  const budgets = [{ cost: 0.004, period: 'month' as const, timezone: 'Europe/Berlin' }, { tokens: 50_000, period: 'total' as const }]
  const others = Array.from({ length: 201 }, (_, at) => [
    `other-${at}`, { protocols: everyProtocol, limits: { budgets: [{ tokens: 5, period: 'total' as const }] } },
  ])
  const untouched = Object.fromEntries(others)
  const { app, settled } = await startGateway(t, upstream.url, {
    console: { path: '/console' },
    metrics: { labels: ['team'] },
    prices: { models: { 'gpt-5': { input: 1.25, output: 10 } } },
    groups: { all: { protocols: everyProtocol, labels: { team: '<b>search' }, limits: { budgets } }, ...untouched },
  })
  const url = await listen(app)
  const usage = { prompt_tokens: 1_000, completion_tokens: 250, total_tokens: 1_250 }
  upstream.queue({
    headers: { 'content-type': 'application/json' }, body: { id: 'c', object: 'chat.completion', model: 'gpt-5', choices: [], usage },
  })
  const body = JSON.stringify({ model: 'gpt-5', max_tokens: 1, messages: [{ role: 'user', content: 'hi' }] })
  await read(await call(`${url}/v1/chat/completions`, { body }).reply)
  await settled.next()
  const { page, troubles } = await watch(await open(t), `${url}/console`, { width: 1_440, colorScheme: 'light' })
  const cells = async (id: string): Promise<string[]> => await page.locator(`#${id} tbody td`).allTextContents()
  t.strictSame(await cells('costs'), ['all', 'gpt-5', '0.00375 USD'])
  t.strictSame(await cells('label-costs'), ['team', '<b>search', '0.00375 USD'])
  await Promise.all([
    page.waitForResponse((reply) => reply.url().endsWith('costs=week')), page.selectOption('#cost-time', 'week'),
  ])
  t.strictSame(await cells('costs'), ['all', 'gpt-5', '0.00375 USD'])
  const rows = await cells('budgets')
  t.match(rows.splice(7, 1), [/^\d{4}-\d\d-01 00:00, in /])
  t.strictSame(rows.splice(0, 7), ['all', 'month, Europe/Berlin', '0.004 USD', '0.00375 USD', '0', '0.00025 USD', ''])
  t.strictSame(rows.slice(0, 8), ['all', 'for ever', '50k tokens', '1,250 tokens', '0', '48.8k tokens', '', 'never'])
  t.equal(await page.locator('#budgets p').textContent(), 'and 3 budgets further from their limits')
  t.equal(await page.locator('#budgets .low').textContent(), '0.00025 USD', 'what is nearly spent stands out')
  t.strictSame(troubles, [])
})

t.test('tells what a table leaves out, and what all of it comes to', options, async (t) => {
  const { app } = await startGateway(t, 'http://127.0.0.1:9', { console: { path: '/console' } })
  for (let n = 0; n < 120; n += 1) {
    gatewayOf(app).recorder.settled(settledRequest({ usage: { tokens: { ...noTokens, input: n + 1 } }, auth: { group: groupOf(`g${n}`) } }))
  }
  const { page } = await watch(await open(t), `${await listen(app)}/console`, { width: 1_280, colorScheme: 'light' })
  t.equal(await page.locator('#tokens p').textContent(), 'and 20 more rows; 7,260 tokens in all')
  t.equal(await page.locator('#costs p').textContent(), 'nothing yet')
  const values = await page.locator('.tile b').evaluateAll((all) => all.map((one) => Math.round(one.getBoundingClientRect().bottom)))
  t.equal(new Set(values).size, 1, 'the numbers of the tiles stand in one line')
})

t.test('goes on by itself, and says when it has lost the gateway', options, async (t) => {
  const url = await startConsole(t)
  const { page } = await watch(await open(t), url, { width: 1_440, colorScheme: 'light' })
  await page.waitForResponse((response) => response.url().includes('/data?after=1'))
  await page.waitForFunction('document.querySelector("#rate b").textContent !== "–"')
  await page.route('**/data*', async (route) => await route.abort())
  await page.waitForSelector('#state.lost')
  t.equal(await page.textContent('#about'), 'does not answer, still asking')
  await page.unroute('**/data*')
  await page.waitForSelector('#state.live')
  t.match(await page.textContent('#about'), 'series')
})

t.test('keeps its charts where workers answer by turns, as behind a proxy', options, async (t) => {
  const url = await startConsole(t)
  const page = await (await open(t)).newPage()
  page.setDefaultTimeout(0)
  const told: number[] = []
  await page.route('**/data*', async (route) => {
    const response = await route.fetch()
    const data = await response.json()
    told.push(data.points.length)
    await route.fulfill({ response, json: { ...data, startedAt: data.startedAt + told.length } })
  })
  await page.goto(url)
  while (Number(told.at(-1) ?? 0) < 4 && told.length < 30) await page.waitForResponse('**/data*')
  t.ok(Number(told.at(-1)) >= 4, 'each tells all that it knows')
})

t.test('shows what there is to a reader whose clock is wrong', options, async (t) => {
  const url = await startConsole(t)
  const browser = await open(t)
  for (const hours of [-1, 1]) {
    const page = await browser.newPage()
    page.setDefaultTimeout(0)
    await page.clock.setFixedTime(Date.now() + hours * 3_600_000)
    await page.goto(url)
    await page.waitForSelector('#tokens table')
    await page.waitForFunction('document.querySelector("#rate b").textContent !== "–"')
    t.match(await page.textContent('#about'), 'series')
  }
})

t.test('begins anew with an app that takes the place of another', options, async (t) => {
  const upstream = await startUpstream(t)
  const port = await freePort()
  const startApp = async (requests: number) => {
    const gateway = await startGateway(t, upstream.url, { console: { path: '/console' } })
    const url = await gateway.app.listen({ host: '127.0.0.1', port })
    for (let n = 0; n < requests; n += 1) {
      await read(await call(`${url}/v1/chat/completions`, { body: '{"model":"gpt-5","messages":[{"role":"user","content":"hi"}]}' }).reply)
      await gateway.settled.next()
    }
    return gateway.app
  }
  const first = await startApp(3)
  const { page } = await watch(await open(t), `http://127.0.0.1:${port}/console`, { width: 1_440, colorScheme: 'light' })
  first.server.closeAllConnections()
  await first.close()
  await page.waitForSelector('#state.lost')
  await startApp(1)
  await page.waitForSelector('#state.live')
  await page.waitForFunction('document.querySelector("#outcomes td:nth-child(2)").textContent === "1"')
})

t.test('long names keep their ends, and the page its width', options, async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, { console: { path: '/console' } })
  const url = await listen(app)
  const model = `accounts/research/deployments/${'a-'.repeat(14)}END`
  await read(
    await call(`${url}/v1/chat/completions`, { body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] }) }).reply
  )
  await settled.next()
  const { page } = await watch(await open(t), `${url}/console`, { width: 390, colorScheme: 'dark' })
  t.equal(await page.textContent('#tokens td.name:nth-child(2)'), model)
  t.equal(await page.evaluate('document.documentElement.scrollWidth'), 390)
})

t.test('a long name without punctuation hides no counts', options, async (t) => {
  const { app } = await startGateway(t, 'http://127.0.0.1:9', { console: { path: '/console' } })
  const { recorder } = gatewayOf(app)
  const group = 'a'.repeat(50)
  recorder.settled(settledRequest({ usage: { tokens: { ...noTokens, input: 1 } }, auth: { group: groupOf(group) } }))
  recorder.limitRejected(group, 'requests')
  const url = `${await listen(app)}/console`
  const browser = await open(t)
  for (const [width, table] of [[1_280, 'limited'], [390, 'limited'], [390, 'tokens']] as const) {
    const { page } = await watch(browser, url, { width, colorScheme: 'light' })
    const count = await page.locator(`#${table} td:not(.name)`).first().boundingBox()
    const card = await page.locator(`#${table}`).boundingBox()
    t.ok(Number(count?.x) + Number(count?.width) <= Number(card?.x) + Number(card?.width), `${table} in ${width} pixels`)
  }
})

t.test('fits a phone', options, async (t) => {
  const url = await startConsole(t)
  const { page } = await watch(await open(t), url, { width: 390, colorScheme: 'dark' })
  t.equal(await page.evaluate('document.documentElement.scrollWidth'), 390)
})

t.test('is dark or light as the reader wants', options, async (t) => {
  const url = await startConsole(t)
  const browser = await open(t)
  const ground = async (page: Page): Promise<unknown> => await page.evaluate('getComputedStyle(document.body).backgroundColor')
  const light = await watch(browser, url, { width: 1_440, colorScheme: 'light' })
  const dark = await watch(browser, url, { width: 1_440, colorScheme: 'dark' })
  t.equal(await ground(light.page), 'rgb(246, 247, 249)')
  t.equal(await ground(dark.page), 'rgb(16, 20, 26)')
  await dark.page.click('#theme')
  t.equal(await ground(dark.page), 'rgb(246, 247, 249)')
  await dark.page.reload()
  await dark.page.waitForSelector('#state.live')
  t.equal(await ground(dark.page), 'rgb(246, 247, 249)', 'and it stays so')
  t.strictSame([...light.troubles, ...dark.troubles], [])
})

t.test('works where the browser keeps no data of sites', options, async (t) => {
  const url = await startConsole(t)
  const profile = t.testdir({ Default: { Preferences: JSON.stringify({ profile: { default_content_setting_values: { cookies: 2 } } }) } })
  const browser = await chromium.launchPersistentContext(profile, { ...launch, colorScheme: 'light' })
  t.teardown(() => browser.close())
  const page = await browser.newPage()
  page.setDefaultTimeout(0)
  await page.goto(url)
  await page.waitForSelector('#state.live')
  await t.rejects(page.evaluate('localStorage'), { message: /SecurityError/ }, 'it does keep none')
  await page.click('#theme')
  t.equal(await page.evaluate('document.documentElement.dataset.theme'), 'dark')
})
