import t from 'tap'
import type { Group } from '../../plugins/core/types.js'
import type { Destination, Upstream } from '../../plugins/core/upstream/upstream.js'
import { compileGlobs } from '../../plugins/core/config/glob.js'
import { modelsAnswer } from '../../plugins/upstreams/model-list.js'
import { Router } from '../../plugins/upstreams/router.js'
import { requestTo, upstreamOf, type Asked } from './request.js'

function routerTo (...names: string[]): Router {
  const destination = (name: string, upstreams: readonly Upstream[]): Destination => ({
    name, upstreams, call: null, open: () => { throw new Error(name) },
  })
  const all = names.map((name): [string, Destination] => [name, destination(name, [upstreamOf({ url: `http://${name}` }, name)])])
  return new Router(
    new Map(all),
    (first, others) => destination([first, others].map((each) => each.map(({ name }) => name).join()).join('|'), [...first, ...others])
  )
}

function groupOf (fields: Partial<Group>): Group {
  return { id: 'g', protocols: new Set(), thirdParty: true, upstream: null, models: null, limits: {}, onStoreFailure: 'closed', ...fields }
}

function found (router: Router, url: string, group: Group | null, asked: Asked = {}): string | null | undefined {
  const llm = requestTo(url, asked)
  llm.auth.group = group
  return router.find(llm)?.name ?? router.refusal(llm)?.code
}

const responses = '/v1/responses'

t.test('patterns are names with * for any part', async (t) => {
  const cases: ReadonlyArray<readonly [patterns: string[], yes: string[], no: string[]]> = [
    [['gpt-*'], ['gpt-', 'gpt-5', 'gpt-5\nx'], ['gpt', 'xgpt-5', 'GPT-5']],
    [['*'], ['', 'x'], []],
    [['o*', 'a.b'], ['o3', 'a.b'], ['axb', '4o']],
    [['a*b**c'], ['abc', 'a1b2c'], ['ab', 'acb']],
    [['m[0-9]+(x)'], ['m[0-9]+(x)'], ['m1x']],
    [['ab*ba', 'a*b*b'], ['abba', 'ab1ba', 'abb', 'a1b2b'], ['aba', 'ab', 'b', 'xabba']],
    // As an expression it took minutes.
    [['*/m-*-x'], ['/m--x'], ['/m-'.repeat(200_000)]],
  ]
  for (const [patterns, yes, no] of cases) {
    const matches = compileGlobs(patterns)
    for (const name of yes) t.ok(matches(name), `${patterns.join()} ${name}`)
    for (const name of no) t.notOk(matches(name), `${patterns.join()} ${name.slice(0, 20)}`)
  }
})

t.test('a request goes to the upstream of its group, or to the only one there is', async (t) => {
  const one = routerTo('a')
  const two = routerTo('a', 'b')
  t.equal(found(one, responses, null), 'a')
  t.equal(found(one, responses, groupOf({})), 'a')
  const routed = groupOf({ routes: [{ models: ['x'], upstream: 'a' }] })
  t.equal(found(one, responses, routed, { model: 'y' }), 'model_not_found', 'also the only one gets no model that no route takes')
  t.equal(found(two, responses, groupOf({})), undefined, 'undecided')
  t.equal(found(routerTo(), responses, groupOf({})), undefined)
  t.equal(found(two, '/v1/models', groupOf({}), { method: 'GET' }), undefined)
  t.equal(found(two, responses, groupOf({ upstream: 'b' })), 'b')
  t.equal(found(two, responses, groupOf({ upstream: 'c' })), undefined)
  const map = { responses: 'b', embeddings: 'a' }
  t.equal(found(two, responses, groupOf({ upstream: map })), 'b')
  t.equal(found(two, '/v1/chat/completions', groupOf({ upstream: map })), undefined)
  t.equal(
    found(two, '/v1/models', groupOf({ upstream: map }), { method: 'GET' }),
    'b',
    'the model list of the first protocol that has an upstream'
  )
})

t.test('the first route that takes the model wins, then the upstream of the group', async (t) => {
  const router = routerTo('a', 'b', 'c')
  const routes = [{ models: ['glm-*', 'x'], upstream: 'a' }, { models: ['glm-4', 'gpt-*'], upstream: 'b' }]
  const open = groupOf({ routes, upstream: 'c' })
  const closed = groupOf({ routes })
  for (const group of [open, closed]) {
    t.equal(found(router, responses, group, { model: 'glm-4' }), 'a')
    t.equal(found(router, responses, group, { model: 'gpt-5' }), 'b')
    t.equal(found(router, responses, group, { model: 'gpt-5' }), 'b', 'and again')
    t.equal(found(router, responses, group, { body: '{"model":"x","mod\\u0065l":"gpt-5"}' }), 'b', 'a body that nobody has read')
  }
  t.equal(found(router, responses, open, { model: 'other' }), 'c')
  t.equal(found(router, responses, open), 'c')
  t.equal(found(router, responses, closed, { model: 'other' }), 'model_not_found')
  t.equal(found(router, responses, closed), 'model_required')
  t.equal(found(router, responses, closed, { body: '{"model":5}' }), 'model_required')
  t.equal(found(router, `${responses}/resp_1`, closed, { method: 'GET' }), 'a,b|', 'what has no model may be with any of them')
  t.equal(found(router, `${responses}/resp_1`, open, { method: 'GET' }), 'c|a,b')
  t.equal(found(router, `${responses}/resp_1`, open, { method: 'GET' }), 'c|a,b', 'and again')
  t.equal(found(router, '/v1/models', closed, { method: 'GET' }), 'a', 'a list is asked of the first')
  t.equal(found(routerTo('b'), responses, groupOf({ routes }), { model: 'glm-4' }), 'b', 'a route to nowhere is none')
  for (let i = 0; i < 600; i += 1) t.equal(found(router, responses, closed, { model: `gpt-${i}` }), 'b')
})

t.test('the models of a group are listed in each family\'s own form, where they are configured', async (t) => {
  const router = routerTo('a', 'b')
  const routes = [{ models: ['gpt-*'], upstream: 'a' }, { models: ['o3', 'gpt-5'], upstream: 'b' }]
  function answer (group: Group | null, asked: Asked = {}, url = '/v1/models'): unknown {
    const llm = requestTo(url, { method: 'GET', ...asked })
    llm.auth.group = group
    return modelsAnswer(llm, router)
  }
  const models = new Set(['gpt-5', 'claude'])
  const one = routes.slice(1)
  t.match(answer(groupOf({ models, upstream: 'a' })), { object: 'list', data: [{ id: 'gpt-5', object: 'model' }, { id: 'claude' }] })
  t.strictSame(
    answer(groupOf({ models, routes })),
    { object: 'list', data: [{ id: 'gpt-5', object: 'model', created: 0, owned_by: 'llm-gateway' }] },
    'what no route takes is not there'
  )
  t.match(answer(groupOf({ routes: one }), { headers: { 'anthropic-version': '2023-06-01' } }), {
    data: [{ type: 'model', id: 'o3' }, { id: 'gpt-5' }], has_more: false, first_id: 'o3', last_id: 'gpt-5',
  })
  t.match(answer(groupOf({ models: new Set(), upstream: 'a' }), { headers: { 'anthropic-version': '2023-06-01' } }), {
    data: [], first_id: null, last_id: null,
  })
  t.match(answer(groupOf({ models: new Set(['gemini-2', 'tunedModels/x']), upstream: 'a' }), { headers: { 'x-goog-api-key': 'x' } }), {
    models: [{ name: 'models/gemini-2' }, { name: 'tunedModels/x' }],
  })
  t.match(answer(groupOf({ models, upstream: 'a' }), {}, '/v1/models/gpt-5'), { id: 'gpt-5', object: 'model' })
  t.match(answer(groupOf({ models, upstream: 'a' }), {}, '/v1/models/other'), { code: 'model_not_found', statusCode: 404 })
  for (const group of [null, groupOf({}), groupOf({ routes }), groupOf({ routes: one, upstream: 'a' })]) {
    t.equal(answer(group), null, 'only the provider knows')
  }
  t.equal(answer(groupOf({ models, upstream: 'a' }), {}, `${responses}/resp_1`), null)
})
