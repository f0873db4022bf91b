import t from 'tap'
import { ModelNames } from '../../plugins/metrics/model-names.js'

function names (listed: string[] | null, maxModels: number): { label: ModelNames['label'], overflows: string[] } {
  const overflows: string[] = []
  const models = new ModelNames({ listed, maxModels, overflowed: (label) => overflows.push(label) })
  return { label: models.label.bind(models), overflows }
}

t.test('a listed name is itself, every other is other', async (t) => {
  const { label, overflows } = names(['gpt-5'], 100)
  t.equal(label('gpt-5', false), 'gpt-5')
  t.equal(label('gpt-6', false), 'other')
  t.strictSame(overflows, [], 'a mistyped name is not worth an alarm')
  t.equal(label('gpt-6', true), 'other')
  t.strictSame(overflows, ['model'], 'one that a provider serves is')
})

t.test('a name is learnt from success, up to the limit', async (t) => {
  const { label, overflows } = names(null, 2)
  t.equal(label('a', false), 'other')
  t.equal(label('a', true), 'a')
  t.equal(label('a', false), 'a')
  t.equal(label('b', true), 'b')
  t.equal(label('c', true), 'other')
  t.strictSame(overflows, ['model'])
})

t.test('names that are never learnt', async (t) => {
  for (const name of ['a b', 'a"b', 'a\nb', 'ü', 'x'.repeat(129), 'a,b', 'a%41']) {
    t.equal(names(null, 10).label(name, true), 'other', JSON.stringify(name))
  }
})

t.test('names that are learnt', async (t) => {
  for (const name of ['models/gemini-2.5-pro', 'org/model:free', 'ft:gpt-5:acme::1', 'm@20261001', '__proto__', 'x'.repeat(128)]) {
    t.equal(names(null, 10).label(name, true), name)
  }
})

t.test('no name is none', async (t) => {
  t.equal(names(null, 10).label(null, true), 'none')
  t.equal(names(null, 10).label('', true), 'none')
})
