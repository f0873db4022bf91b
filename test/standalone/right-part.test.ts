import t from 'tap'
import { rightPart } from '../../plugins/standalone/right-part.js'

const upstreams = { main: { simulate: true } }

t.test('names with dots in them are told apart', async (t) => {
  const groups = { a: { protocols: [] }, 'a.b': { protocols: [], models: 5 }, 'a.b.c': { protocols: [] } }
  const { rest, wrong } = rightPart({ upstreams, groups }, [{ path: 'groups.a.b.models', message: '' }])
  t.same(rest['groups'], { a: { protocols: [], upstream: 'main' }, 'a.b': { protocols: [] }, 'a.b.c': { protocols: [] } })
  t.equal(wrong.size, 0)
})

t.test('of thousands of keys each may have the same mistake, and each path is looked at a few times', async (t) => {
  const keys = Array.from({ length: 200 }, (_, at) => ({ id: `k${at}`, group: 'all', secret: `s${at}`, nope: 1 }))
  const problems = keys.map((_, at) => ({ path: `keys[${at}].nope`, message: '' }))
  const { startsWith } = String.prototype
  let looks = 0
  Reflect.set(String.prototype, 'startsWith', function (this: string, ...args: Parameters<typeof startsWith>): boolean {
    looks += 1
    return Reflect.apply(startsWith, this, args)
  })
  const { rest } = rightPart({ upstreams, groups: { all: { protocols: [] } }, keys }, problems)
  Reflect.set(String.prototype, 'startsWith', startsWith)
  t.ok(looks < 10 * keys.length)
  t.same(rest['keys'], keys.map(({ id, group, secret }) => ({ id, group, secret })))
})

t.test('a text or a list in place of the whole file has no fields: each would be looked up among the known names', async (t) => {
  for (const value of ['some log', ['GET /', 'GET /'], 5, null]) {
    t.same(Object.keys(rightPart(value, [{ path: '', message: '' }]).rest), [], JSON.stringify(value))
  }
})

t.test('of an entry thousands of fields may be wrong, such as all groups below one, and none is looked for among all', async (t) => {
  const names = Array.from({ length: 300 }, (_, at) => `g${at}`)
  const all = { protocols: [], ...Object.fromEntries(names.map((name) => [name, { protocols: [] }])) }
  let reads = 0
  const { entries } = Object
  Object.entries = (value: object): Array<[string, unknown]> => {
    const found = entries(value)
    reads += found.length
    return found
  }
  const { rest } = rightPart({ upstreams, groups: { all } }, names.map((name) => ({ path: `groups.all.${name}`, message: '' })))
  Object.entries = entries
  t.ok(reads < 10 * names.length, String(reads))
  t.same(rest['groups'], { all: { protocols: [] } })
})
