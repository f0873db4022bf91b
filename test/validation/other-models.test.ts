import t from 'tap'
import { otherModels } from '../../plugins/validation/other-models.js'

t.test('models that a body names beside its own', async (t) => {
  const paths = ['models', 'requests.*.model']
  const cases: ReadonlyArray<readonly [what: string, json: unknown, models: readonly string[] | null]> = [
    ['none', { model: 'm' }, null],
    ['a list', { models: ['a', 'models/b'] }, ['a', 'b']],
    ['one', { models: 'a' }, ['a']],
    ['objects that hold one', { models: [{ model: 'a' }, { other: 'b' }, 7] }, ['a', 'b']],
    ['in each element', { requests: [{ model: 'a' }, { model: 'models/b' }] }, ['a', 'b']],
    ['beside other keys', { requests: [{ 'x-model': 'b', $schema: 'c', Models: 'd', model: 'a' }] }, ['a']],
    ['elements that hold none', { requests: [1, null, 'text', {}] }, []],
    ['no list where one should be', { requests: { model: 'a' } }, []],
    ['no object at all', ['a'], null],
  ]
  for (const [what, json, models] of cases) t.strictSame(otherModels(json, paths, 'models/'), models, what)
})

t.test('names deep within lists are read once, and not handed up from level to level', { timeout: 10_000 }, async (t) => {
  let models: unknown = new Array(1_000_000).fill('m')
  for (let depth = 0; depth < 250; depth += 1) models = [models]
  t.equal(otherModels({ models }, ['models'], 'models/')?.length, 1_000_000)
})
